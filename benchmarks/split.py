"""Which univariate sets may be looked at while the default learner is tuned, and which only once, at the end.

    python benchmarks/split.py ../shared/data-unpacked [--out benchmarks/records/split.json]

FOLDER holds `ucr/` and `ucr_more/`. Test scores of 31 of the 61 sets were looked at before this split was drawn: these
are in the development half, whatever the draw says. They are small: all have fewer than 400 training series. So every
fourth of the other sets joins them, by size, then by type, then by lot; the draw has one seed. All others confirm.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

SEED = 20
#: Of n training series: below 150, below 400, and the rest.
SIZES = (150, 400)
#: Earlier studies looked at their test scores.
SEEN = [
    "ACSF1",
    "ArrowHead",
    "Beef",
    "BeetleFly",
    "BirdChicken",
    "CBF",
    "Chinatown",
    "Coffee",
    "ECG200",
    "FaceFour",
    "Fish",
    "Fungi",
    "GunPoint",
    "Ham",
    "Haptics",
    "InsectEPGRegularTrain",
    "ItalyPowerDemand",
    "Lightning7",
    "MoteStrain",
    "OSULeaf",
    "PigAirwayPressure",
    "ShapeletSim",
    "SonyAIBORobotSurface1",
    "ToeSegmentation1",
    "Trace",
    "UMD",
    "Wine",
    "Worms",
    "CricketX",
    "MedicalImages",
    "MiddlePhalanxTW",
]
#: As the archive's table of sets has it; rare ones together.
TYPES = {
    "image": """Adiac DistalPhalanxOutlineAgeGroup DistalPhalanxOutlineCorrect FaceAll FiftyWords
        MiddlePhalanxOutlineCorrect ProximalPhalanxOutlineCorrect ProximalPhalanxTW Yoga""",
    "device": "Computers LargeKitchenAppliances RefrigerationDevices ScreenType SmallKitchenAppliances",
    "motion": """CricketZ GunPointMaleVersusFemale GunPointOldVersusYoung UWaveGestureLibraryX UWaveGestureLibraryZ
        WormsTwoClass""",
    "simulated": "ChlorineConcentration SmoothSubspace SyntheticControl TwoPatterns",
    "sensor": "ECG5000 ECGFiveDays EOGHorizontalSignal Earthquakes FreezerRegularTrain Strawberry",
}


def draw(train_sizes: dict[str, int]) -> dict[str, list[str]]:
    """Development and confirmation half of the sets of these sizes."""
    types = {name: kind for kind, names in TYPES.items() for name in names.split()}
    random = np.random.default_rng(SEED)
    others = sorted(set(train_sizes) - set(SEEN))
    lot = dict(zip(others, random.random(len(others)), strict=True))
    order = sorted(
        others, key=lambda name: (np.searchsorted(SIZES, train_sizes[name], "right"), types[name], lot[name])
    )
    drawn = order[int(random.integers(4)) :: 4]
    return {
        "development": sorted([*SEEN, *drawn]),
        "drawn into development": sorted(drawn),
        "confirmation": sorted(set(others) - set(drawn)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "records" / "split.json")
    arguments = parser.parse_args()
    sizes = {
        file.parent.name: sum(1 for line in file.read_text().splitlines() if line.strip())
        for part in ("ucr", "ucr_more")
        for file in sorted((arguments.folder / part).glob("*/*_TRAIN.tsv"))
    }
    split = draw(sizes)
    record = {"seed": SEED, "sizes": SIZES, **split, "training series": sizes}
    arguments.out.write_text(json.dumps(record, indent=1) + "\n")
    print({name: len(sets) for name, sets in split.items()}, split["drawn into development"])


if __name__ == "__main__":
    main()
