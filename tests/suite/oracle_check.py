"""Holds the label of a suite program against what the oracle saw of it."""

UNJUDGED = {
    "gloo": "the oracle does not see collectives in child processes",
    "worker": "the oracle does not see DataLoader workers",
}


def unjudged(entry):
    """Why the oracle cannot judge a program, "" where it can."""
    return "; ".join(UNJUDGED[need] for need in entry["needs"] if need in UNJUDGED)


def describe(birth):
    into = ", ".join(f"{place[0]} at step {place[2]}" for place in birth["escapes"]) or "nothing"
    lines = " or ".join(map(str, birth["lines"])) or "?"
    return (f"{birth['kind']} of {birth['op']} in {birth['node'] or 'no node'}, line {lines}, "
            f"step {birth['step']}, {birth['phase']}, into {into}"
            f"{', intended' if birth['intended'] else ''} {birth['note']}".rstrip())


def program_complaints(entry, verdict):
    """What is wrong with the label of a bug program, as lines of text."""
    births, marked, complaints = verdict["births"], entry["lines_ok"], []
    expected = [birth for birth in births if on_line(birth, marked) and not birth["intended"]]
    if not expected:
        complaints.append(f"nothing is born at line {entry['line']}")
    else:
        complaints += label_complaints(entry, expected, verdict["steps"])
    first = first_birth(entry, births)
    if first is not None and not on_line(first, marked):
        complaints.append(f"line {entry['line']} is marked, the first birth is {describe(first)}")
    if first is not None and first["escapes"] and set(entry["kind"]) != {"zero"}:
        worst = "warning" if all(place[0] == "host" for place in first["escapes"]) else "error"
        if worst != entry["severity"]:
            complaints.append(f"severity={entry['severity']}, it is {worst}: {describe(first)}")
    if "loss" in {place[0] for birth in births for place in birth["escapes"]} \
            and entry["loss_stays_finite"]:
        complaints.append("loss_stays_finite=yes, but backward starts from a bad loss")
    if complaints:
        complaints += ["  seen: " + describe(birth) for birth in births[:8]]
    return complaints


def label_complaints(entry, expected, steps):
    """Of the births at the marked line one must have the op, kind and phase of the label, at its
    step."""
    complaints = []
    # The oracle counts the steps of torch.optim; in a loop that updates by hand it sees none.
    step = entry["first_step"] if steps else None
    wanted = {"op": entry["birth_op"], "kind": entry["kind"], "phase": [entry["phase"]],
              "step": [step]}
    for key, allowed in wanted.items():
        seen = [value for birth in expected for value in said_of(birth, key)]
        if allowed != [None] and not any(value in allowed + [None] for value in seen):
            complaints.append(f"label says {key} {allowed[0]}, "
                              f"at the marked line it is "
                              f"{', '.join(map(str, dict.fromkeys(seen)))}")
    return complaints


def said_of(birth, key):
    """What a label may say of a birth; None is anything. Which op a value from outside is blamed
    on is a matter of taste; an initial value (load), and what first meets a prediction (forward), look
    like data to the oracle."""
    if key == "op" and birth["op"] == "external":
        return [None]
    if key == "phase" and birth["phase"] == "data":
        return ["data", "load", "forward"]
    return [birth[key]]


def on_line(birth, lines):
    return any(line in lines for line in birth["lines"])


def first_birth(entry, births):
    """The first birth that a finding should be about; where nothing escapes, the first of the
    right kind."""
    legitimate = entry["precursor_lines"] + entry["intended_lines"]
    open_births = [birth for birth in births
                   if not on_line(birth, legitimate) and birth["kind"] != "zero"
                   and (birth["escapes"] or not birth["intended"])]
    escaped = [birth for birth in open_births if birth["escapes"]]
    into_training = [birth for birth in escaped
                     if any(place[0] != "host" for place in birth["escapes"])]
    candidates = into_training or escaped
    return candidates[0] if candidates else None


def control_complaints(entry, verdict):
    """What is not healthy about a control, as lines of text. Only the host may read a bad value,
    with a warning."""
    complaints = []
    for birth in verdict["births"]:
        into = {place[0] for place in birth["escapes"]}
        if entry["max_severity"] == "warning":
            into -= {"host"}
        if into and not (birth["intended"] and birth["kind"] != "nan" and into == {"host"}):
            complaints.append(describe(birth))
    return complaints
