"""Holds the metrics of a run against the thresholds of targets.json."""
import scoring
from manifest import of_families
from tables import TITLES


def missed(metrics, targets):
    """One line for each target that is missed. A share is compared by `at_least`, a count by
    `at_most`."""
    lines = []
    for key, bound in targets.items():
        if key not in metrics or not set(bound) <= {"at_least", "at_most"}:
            raise SystemExit(f"target {key}: {bound}; known metrics are {', '.join(TITLES)}")
        metric = metrics[key]
        if metric is None or isinstance(metric, dict) and not metric["of"]:
            lines.append(f"target not measured: {TITLES[key]}")
            continue
        value = metric["share"] if isinstance(metric, dict) else metric
        count = metric["good"] if isinstance(metric, dict) else metric
        if "at_least" in bound and value < bound["at_least"]:
            lines.append(f"target missed: {TITLES[key]} is {value:.3f}, "
                         f"wanted at least {bound['at_least']}")
        if "at_most" in bound and count > bound["at_most"]:
            lines.append(f"target missed: {TITLES[key]} is {count}, "
                         f"wanted at most {bound['at_most']}")
    return lines


def missed_of_families(manifest, runs, targets):
    """As `missed`, of a manifest of threads: of the open and of the frozen families, each for itself."""
    lines = []
    for families in ("open", "frozen"):
        scored = scoring.score(of_families(manifest, families), runs)
        if scored["programs"] or scored["controls"]:
            lines += [f"{families} families: {line}" for line in missed(scored["metrics"], targets)]
    return lines
