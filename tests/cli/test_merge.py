"""numsan merge on made reports: what is said of each kind of job, as golden files, and of files that are no reports.

NUMSAN_WRITE_GOLDEN=1 writes the golden files anew: read the difference before it is committed.
"""
import json
import os
import re
import subprocess

import jsonschema
import made_jobs
import made_reports
import pytest
import run_numsan

pytestmark = pytest.mark.usefixtures("build")
SUFFIX = {"text": "txt", "json": "json", "markdown": "md"}


def merge(*arguments, cwd=None, status=0):
    done = subprocess.run([run_numsan.COMMAND, "merge", *map(str, arguments)], capture_output=True, text=True, cwd=cwd,
                          timeout=60, env=run_numsan.plain_environment())
    assert done.returncode == status, (done.stdout, done.stderr)
    return done


def merged(folder, reports):
    """The only run, as JSON says it."""
    made_reports.write(folder, reports, "rank-{}.json")
    document = json.loads(merge(folder, "--format", "json").stdout)
    assert len(document["runs"]) == 1
    return document["runs"][0]


@pytest.mark.parametrize("case", made_jobs.CASES)
def test_made_reports_fit_the_schema(case):
    validator = jsonschema.Draft202012Validator(json.loads(run_numsan.SCHEMA.read_text()))
    for report in made_jobs.CASES[case]():
        validator.validate(report)


@pytest.mark.parametrize("case", made_jobs.CASES)
@pytest.mark.parametrize("name", SUFFIX)
def test_golden(case, name, tmp_path):
    made_reports.write(tmp_path / "job", made_jobs.CASES[case](), "rank-{}.json")
    done = merge("job", "--format", name, cwd=tmp_path)
    path = made_reports.GOLDEN / "merge" / f"{case}.{SUFFIX[name]}"
    if os.environ.get("NUMSAN_WRITE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(done.stdout)
    assert (done.stdout, done.stderr) == (path.read_text(), "")


def test_the_first_rank_is_that_of_the_fewest_operations_and_not_of_the_lowest_step(tmp_path):
    """Steps are counted by each rank for itself: one may have begun later."""
    ranks = made_jobs.healthy()
    made_jobs.finds(ranks[0], 1, begun=30, step=2)
    made_jobs.finds(ranks[2], 2, begun=29, step=7)
    assert merged(tmp_path, ranks)["first"]["rank"] == 2


def test_the_same_operations_leave_it_to_the_step_and_then_to_the_rank(tmp_path):
    ranks = made_jobs.healthy()
    for number, step in ((3, 5), (1, 5), (0, 6)):
        made_jobs.finds(ranks[number], number, begun=30, step=step)
    assert merged(tmp_path, ranks)["first"]["rank"] == 1


def test_an_error_is_before_a_warning(tmp_path):
    ranks = made_jobs.healthy()
    made_jobs.finds(ranks[0], 1, begun=3, severity="warning")
    made_jobs.finds(ranks[2], 2, begun=29)
    assert merged(tmp_path, ranks)["first"]["rank"] == 2


def test_a_finding_of_all_ranks_is_one(tmp_path):
    ranks = [made_jobs.rank(number, 8) for number in range(8)]
    for report in ranks:
        made_jobs.finds(report, 4)
    run = merged(tmp_path, ranks)
    assert [(one["ranks"], one["first_rank"]) for one in run["findings"]] == [(list(range(8)), 0)]
    assert "the same finding: ranks 0-7\n" in merge(tmp_path).stdout


def test_an_overflow_of_a_sum_is_nobodys_but_the_operations(tmp_path):
    ranks = made_jobs.healthy()
    for report in ranks:
        made_jobs.receives(report, made_jobs.operation(**{"from": "0-3"}))
        report["findings"][0].update(mechanism="OVF", code="NS104")
    run = merged(tmp_path, ranks)
    assert (run["first"]["rank"], run["received"]) == (0, [])


def test_what_nobody_sent_is_a_finding_of_its_own(tmp_path):
    ranks = made_jobs.healthy()
    made_jobs.receives(ranks[2], made_jobs.operation(**{"from": "0-3"}))
    run = merged(tmp_path, ranks)
    assert (run["first"]["rank"], run["received"], run["ranks"]["only_received"]) == (2, [], [])


def test_what_one_rank_sent_to_another_is_not_a_thirds(tmp_path):
    """Two ranks send to rank 0 with the same number: the number of a send counts between two ranks."""
    ranks = made_jobs.healthy()
    for number in (2, 3):
        made_jobs.finds(ranks[number], number, begun=10 - number,
                        sent=[made_jobs.operation("c10d::send", 4, peer=0, tag=0, to="0")])
    made_jobs.receives(ranks[0], made_jobs.operation("c10d::recv_", 4, peer=2, tag=0, **{"from": "2"}))
    run = merged(tmp_path, ranks)
    assert run["first"]["rank"] == 3
    assert [(one["from"], one["ranks"]) for one in run["received"]] == [(2, [0])]


def test_a_receive_from_any_rank_is_joined_to_one_that_sent_there(tmp_path):
    ranks = made_jobs.healthy()
    made_jobs.finds(ranks[3], sent=[made_jobs.operation("c10d::send", 4, peer=1, tag=5, to="1")])
    made_jobs.receives(ranks[1], made_jobs.operation("c10d::recv_any_source_", None, tag=5, **{"from": None}))
    assert [(one["from"], one["ranks"]) for one in merged(tmp_path, ranks)["received"]] == [(3, [1])]


def test_a_long_chain_goes_back_to_its_beginning(tmp_path):
    size = 600
    ranks = [made_jobs.rank(number, size) for number in range(size)]
    for number, report in enumerate(ranks):
        sent = [made_jobs.operation("c10d::send", 1, peer=number + 1, tag=0, to=str(number + 1))]
        if number == 0:
            made_jobs.finds(report, sent=sent)
        else:
            made_jobs.receives(report, made_jobs.operation("c10d::recv_", 1, peer=number - 1, tag=0,
                                                           **{"from": str(number - 1)}), sent=sent)
    run = merged(tmp_path, ranks)
    assert [(one["from"], len(one["ranks"])) for one in run["received"]] == [(0, size - 1)]
    assert "received from rank 0: ranks 1-599, at first by `c10d::recv_` 1 of" in merge(tmp_path).stdout


def test_ranks_that_send_to_each_other_do_not_go_round_and_round(tmp_path):
    ranks = made_jobs.healthy()[:2]
    for number, report in enumerate(ranks):
        report["run"]["world_size"] = 2
        made_jobs.receives(report, made_jobs.operation(number=None, **{"from": None}),
                           sent=[made_jobs.operation(number=None, to=None)])
    run = merged(tmp_path, ranks)
    first = run["first"]["rank"]
    assert [(one["from"], one["ranks"]) for one in run["received"]] == [(first, [1 - first])]


def test_thousands_of_ranks(tmp_path):
    """Groups of eight neighbours, in which one rank sends to the others; of the whole job only two send."""
    size, firsts = 4096, {77: 30, 3001: 29}
    ranks = []
    for number in range(size):
        row = [number // 8 * 8 + place for place in range(8)]
        groups = [made_jobs.group("0", "default_pg", number, size, f"0-{size - 1}"),
                  made_jobs.group(f"tp{number // 8}", "mesh_tp", number % 8, 8, f"{row[0]}-{row[-1]}")]
        report = made_jobs.rank(number, size, groups=groups, options={})
        near = made_jobs.operation(number=3, group=f"tp{number // 8}", description="mesh_tp", to="x")
        far = made_jobs.operation(number=31, to="x")
        if number in firsts:
            made_jobs.finds(report, number, begun=firsts[number], sent=[near, far])
        elif number // 8 in [first // 8 for first in firsts]:
            made_jobs.receives(report, {**near, "from": "x"}, begun=30, sent=[far])
        elif number % 2:
            made_jobs.receives(report, {**far, "from": "x"}, begun=30)
        elif number > 4000:
            continue  # it was quiet, and wrote none
        ranks.append(report)
    run = merged(tmp_path, ranks)
    assert run["first"]["rank"] == 3001, "by the operations: it had begun fewer"
    assert [(one["first_rank"], one["ranks"]) for one in run["findings"]] == [(3001, [3001]), (77, [77])]
    received = {one["from"]: one["ranks"] for one in run["received"]}
    assert [rank for rank in received[3001] if rank // 8 == 375] == [3000, 3002, 3003, 3004, 3005, 3006, 3007]
    assert 72 in received[77] and 1 in received[77]
    assert run["ranks"]["missing"] == list(range(4002, 4096, 2)) and run["ranks"]["missing_may_be_quiet"]
    text = merge(tmp_path).stdout
    assert "ranks 4002-4094:2 have no report: nothing was found there, or they were killed" in text


def test_reports_of_two_jobs_are_told_apart_by_the_job(tmp_path):
    ranks = [made_jobs.rank(0, 2), made_jobs.rank(1, 2, job="none 0 node0 29501")]
    made_reports.write(tmp_path, ranks)
    done = merge(tmp_path)
    assert "numsan: the reports are of 2 runs, which are not merged; they are told apart by job\n" in done.stdout
    assert re.search(r"^run 2 of 2: torchrun job none 0 node0 29501, started \S+, 2 ranks, reports \S+$", done.stdout,
                     re.M)


def test_a_process_that_a_rank_started_is_no_other_run(tmp_path):
    ranks = made_jobs.healthy()
    helper = made_jobs.rank(1, 4, started="2026-11-23T10:01:00Z", ended="2026-11-23T10:01:30Z", argv=["python", "h.py"])
    helper["run"].update(pid=777, id="other")
    made_jobs.finds(helper, 5)
    child = made_jobs.rank(2, 4, started="2026-11-23T10:02:00Z", ended="2026-11-23T10:02:30Z")
    child["run"]["pid"] = 778  # forked: the same id
    run = merged(tmp_path, [*ranks, helper, child])
    assert (run["reports"], run["first"]["rank"]) == (6, 1)


def test_processes_without_a_rank_are_left_out_and_named_where_they_found_something(tmp_path):
    ranks = made_jobs.healthy()
    launcher, other = (made_reports.example(rank=None, world_size=None) for _ in range(2))
    launcher["findings"] = []
    paths = made_reports.write(tmp_path, [*ranks, launcher, other])
    text = merge(tmp_path).stdout
    assert f"numsan: {paths[5]}: 1 finding of a process without a rank, which no rank's is ordered against; `numsan " \
        "report` shows it\n" in text
    assert "numsan: left out: 1 report without a finding, of a process without a rank\n" in text


def test_reports_without_any_rank_are_no_job(tmp_path):
    made_reports.write(tmp_path, [made_reports.example()])
    done = merge(tmp_path, status=2)
    assert done.stderr == f"numsan: {tmp_path}: no report in it says which rank it is of; `numsan report` shows them\n"


def test_damaged_and_foreign_files(tmp_path):
    made_reports.write(tmp_path, made_jobs.healthy())
    (tmp_path / "other.json").write_text('{"a": 1}')
    done = merge(tmp_path)
    assert "reports of 4 of 4 ranks" in done.stdout
    assert re.fullmatch(r"numsan: skipped \S+other.json: .*\n", done.stderr)
    (tmp_path / "numsan-2.json").write_text((tmp_path / "numsan-2.json").read_text()[:500])
    done = merge(tmp_path, status=2)
    assert done.stdout == "" and re.search(r"numsan-2.json: byte \d+: ", done.stderr)


@pytest.mark.parametrize("report", [
    {"run": {"rank": 1, "groups": 7}}, {"run": {"rank": 2 ** 63}}, {"run": {"rank": -1}},
    {"run": {"rank": 1, "started": "yesterday", "world_size": 2 ** 62}},
    {"run": {"rank": 1, "groups": [{"name": "0", "rank": 0, "size": 2, "ranks": "0-99999999999", "collectives": -1}]},
     "findings": [7, {"received": {"group": "0", "peer": -5}, "sent": [{"group": "9"}, 3], "collectives": {"0": "x"},
                      "mechanism": "DATA", "severity": "error"}]}])
def test_odd_documents(report, tmp_path):
    made = made_jobs.rank(0, 2)
    made["run"].update(report["run"])
    made["findings"] = report.get("findings", [])
    path, = made_reports.write(tmp_path, [made])
    done = subprocess.run([run_numsan.COMMAND, "merge", path], capture_output=True, text=True, timeout=60)
    assert done.returncode in (0, 2) and (done.stdout or done.stderr), done


def test_an_unknown_format(tmp_path):
    done = merge(tmp_path, "--format", "html", status=2)
    assert done.stderr == "numsan: format 'html': expected text, json or markdown; did you mean 'text'?\n"
