"""Run the campaign: ``python tests/campaign --minutes 60 --seed 0``, or ``--replay KIND:SEED``."""

import argparse
import os
import sys
from pathlib import Path

# One thread of BLAS in every process: two cores are shared by cases that run side by side.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")
TESTS = Path(__file__).resolve().parents[1]
sys.path[0] = str(TESTS)
places = [str(TESTS.parent / "src"), str(TESTS), os.environ.get("PYTHONPATH", "")]
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, places))
sys.path.insert(0, str(TESTS.parent / "src"))

from campaign.kinds import KINDS  # noqa: E402
from campaign.runner import Campaign, replay  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(prog="campaign", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0, help="how long (60)")
    parser.add_argument("--cases", type=int, help="so many cases of each kind instead")
    parser.add_argument("--seed", type=int, default=0, help="seed of the first case of each kind")
    parser.add_argument("--jobs", type=int, default=2, help="cases at once (2)")
    parser.add_argument("--kinds", help=f"some of {','.join(KINDS)}")
    parser.add_argument("--quick", action="store_true", help="the few small cases that CI runs")
    parser.add_argument("--replay", metavar="KIND:SEED", help="run one case again, and show it")
    parser.add_argument("-o", "--output", type=Path, default=Path("campaign-out"))
    options = parser.parse_args()
    if options.quick:
        os.environ["BIGLP_CAMPAIGN_QUICK"] = "1"
    if options.replay:
        return replay(options.replay, options.output)
    chosen = options.kinds.split(",") if options.kinds else list(KINDS)
    campaign = Campaign([KINDS[name] for name in chosen], options.seed, options.output)
    cases = dict.fromkeys(chosen, options.cases) if options.cases else None
    if options.quick:
        cases = {name: KINDS[name].quick for name in chosen}
    try:
        campaign.run(options.jobs, options.minutes * 60, cases)
    except KeyboardInterrupt:
        print("interrupted; so far:")
    print(campaign.report())
    return 1 if campaign.failures else 0


if __name__ == "__main__":
    sys.exit(main())
