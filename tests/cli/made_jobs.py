"""Reports of the ranks of a job, for tests of what a merge says of them."""
import made_reports

JOB = "none 0 node0 29500"


def rank(number, size, **run):
    """A rank that found nothing: it has called 40 operations of the group of all ranks."""
    run = {"started": "2026-11-23T10:00:00Z", "ended": "2026-11-23T10:05:00Z", "job": JOB, "launcher": "torchrun",
           "options": {"report_when": "always"}, **run}
    report = made_reports.example(rank=number, world_size=size, pid=100 + number, host=f"node{number // 4}",
                                  id=f"00000000-0000-4000-8000-{number:012x}", local_rank=number % 4, **run)
    report["run"].setdefault("groups", [group("0", "default_pg", number, size, f"0-{size - 1}")])
    report.update(findings=[], verdict="clean")
    return report


def group(name, description, number, size, ranks, collectives=40):
    return {"name": name, "description": description, "rank": number, "size": size, "ranks": ranks,
            "collectives": collectives}


def operation(op="c10d::allreduce_", number=8, group="0", description="default_pg", peer=None, step=412, **more):
    return {"op": op, "group": group, "description": description, "number": number, "peer": peer, **more, "step": step,
            "seq": 91250}


def finds(report, number=0, begun=7, **changes):
    """Adds a finding of this rank's own, on line 100 + number."""
    made = made_reports.finding(number, rank=report["run"]["rank"], collectives={"0": begun}, **changes)
    report["findings"].append({**made, "id": f"F{len(report['findings']) + 1}"})
    report["verdict"] = "findings"
    return made


def receives(report, received, begun=7, **changes):
    """Adds a finding of a value that came from another rank."""
    return finds(report, 900, begun, code="NS108", mechanism="DATA", op=received["op"], phase="comm", forward=None,
                 backward_location=None, user_location=None, module=None, inputs=[], help=[],
                 title=f"first NaN of this run: `{received['op']}` took in a bad value in 3 of 3 values",
                 evidence=["received: what this process put in was finite"], received=received, **changes)


def killed(report):
    report.update(verdict="incomplete")
    report["run"].update(ended=None, exit_status=None)
    return report


def all_reduce():
    """Nine ranks: 3 was first, 0, 1, 2 and 4 received, 5 and 6 have a finding of their own, 7 was killed, 8 is
    missing."""
    ranks = [rank(number, 9) for number in range(8)]
    for number in (0, 1, 2, 4):
        receives(ranks[number], operation(**{"from": "0-8"}), sent=[operation(number=9, to="0-8")])
    finds(ranks[3], sent=[operation(to="0-2, 4-8"), operation(number=9, step=413, to="0-2, 4-8")])
    for number in (5, 6):
        finds(ranks[number], 2, begun=20, severity="warning", code="NS104", mechanism="OVF", kind="overflow", step=400,
              title="`aten::mm` came within 3 % of the largest float16", op="aten::mm", phase="forward", forward=None)
        ranks[number]["run"]["exit_status"] = 1
    killed(ranks[7])
    return ranks


def pipeline():
    """Four stages: 1 sends to 2 what it made, 2 to 3 what it made of it; the ranks of the group are not listed."""
    ranks = [rank(number, 4, groups=[group("0", "", number, 4, None)]) for number in range(4)]

    def moved(op, peer, number, key):
        return operation(op, number, description="", peer=peer, tag=0, **{key: None})

    finds(ranks[1], sent=[moved("c10d::send", 2, 5, "to")])
    receives(ranks[2], moved("c10d::recv_", 1, 5, "from"), sent=[moved("c10d::send", 3, 6, "to")])
    receives(ranks[3], moved("c10d::recv_", 2, 6, "from"))
    return ranks


def lost():
    """Sixteen ranks: 5 sent it and was killed before it wrote a report; who was quiet wrote none."""
    ranks = [rank(number, 16, options={}) for number in (0, 3, 4)]
    for report in ranks:
        receives(report, operation("c10d::_allgather_base_", peer=5, **{"from": "5"}))
    return ranks


def two_runs():
    """A run of two ranks, and the same folder's run of the day before."""
    now = [rank(number, 2) for number in range(2)]
    finds(now[1], sent=[operation(to="0")])
    receives(now[0], operation(**{"from": "1"}))
    before = [rank(number, 2, started=f"2026-11-22T10:00:0{number}Z", ended="2026-11-22T10:05:00Z")
              for number in range(2)]
    for report in before:
        report["run"]["id"] = report["run"]["id"].replace("0000-4000", "0000-4001")
    finds(before[0], 3)
    return now + before


def healthy():
    return [rank(number, 4) for number in range(4)]


CASES = {"all_reduce": all_reduce, "pipeline": pipeline, "lost": lost, "two_runs": two_runs, "healthy": healthy}
