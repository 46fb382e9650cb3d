"""`rntk gram`: the Gram matrix of the sequences in a file, of any size, onto disk."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from .extras import require
from .options import (
    DataArgument,
    DecimalOption,
    FormatOption,
    HeaderOption,
    JsonOption,
    LabelOption,
    MissingOption,
    read_data,
)
from .output import counted, make_console, print_json
from .refusal import refuse, refusing


def gram(
    data: DataArgument,
    out: Annotated[Path, typer.Option(metavar="STORE", help="Folder for the matrix, named .zarr.")],
    activation: Annotated[str, typer.Option(metavar="NAME", help="relu, erf, tanh, ...")] = "relu",
    sigma_w: Annotated[float, typer.Option(help="Deviation of the recurrent weights.")] = 2**0.5,
    sigma_u: Annotated[float, typer.Option(help="Deviation of the input weights.")] = 1.0,
    sigma_b: Annotated[float, typer.Option(help="Deviation of the biases.")] = 0.0,
    depth: Annotated[int, typer.Option(metavar="N", help="Stacked layers.")] = 1,
    readout: Annotated[str, typer.Option(metavar="NAME", help="Output: last step, or the mean of all.")] = "last",
    normalize: Annotated[bool, typer.Option("--normalize", help="Divide by the roots of the diagonal.")] = False,
    kind: Annotated[
        str, typer.Option(metavar="NAME", help="Tangent kernel (ntk), or covariance of untrained networks (nngp).")
    ] = "ntk",
    dtype: Annotated[
        str, typer.Option(metavar="NAME", help="Precision of kernel and matrix: float32 or float64.")
    ] = "float64",
    memory: Annotated[str, typer.Option(metavar="SIZE", help="Memory for tiles at work, such as 500MB.")] = "1GB",
    block: Annotated[int | None, typer.Option(metavar="N", help="Sequences per side of a tile.")] = None,
    plain: Annotated[bool, typer.Option("--plain", help="Don't compress the tiles.")] = False,
    scheduler: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Dask scheduler whose workers compute, such as tcp://host:8786."),
    ] = None,
    jobs: Annotated[int | None, typer.Option(metavar="N", help="Threads; all cores unless given.")] = None,
    label: LabelOption = "auto",
    format: FormatOption = None,
    missing: MissingOption = "error",
    header: HeaderOption = None,
    decimal: DecimalOption = None,
    force: Annotated[bool, typer.Option("--force", help="Delete STORE if it holds another matrix.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Compute the Gram matrix of sequences onto disk; go on where an earlier run stopped."""
    if out.suffix != ".zarr":
        refuse(f"--out {out} must end in .zarr")
    require("disk", ("zarr",))
    if scheduler is not None:
        require("distributed", ("dask", "distributed"))
    content = read_data(data, label, format, missing, header, decimal)

    from ..gram import ClusterError, GramStoreError, StoreFullError, compute
    from ..kernels import RNTK

    begin = time.perf_counter()
    with refusing(f"the Gram matrix of {data} can't be computed"):
        kernel = RNTK(
            activation,
            sigma_w,
            sigma_u,
            sigma_b,
            depth=depth,
            readout=readout,
            normalize=normalize,
            kind=kind,
            dtype=dtype,
            n_jobs=jobs,
        )
        try:
            K = compute(
                kernel,
                content.X,
                out=out,
                block=block,
                memory=memory,
                compress=not plain,
                client=scheduler,
                overwrite=force,
            )
        except (GramStoreError, StoreFullError, ClusterError) as error:
            refuse(str(error))
        except OSError as error:
            refuse(f"--out {out} can't be written: {error}")
        except KeyboardInterrupt:
            typer.echo("rntk: interrupted; finished tiles are kept: the same command goes on from there", err=True)
            raise typer.Exit(130) from None
    report = {
        "data": str(data),
        "store": str(out),
        "shape": list(K.shape),
        "dtype": K.dtype.name,
        "tiles": len(K.tiles),
        "block": K.block,
        "found": K.found,
        "seconds": round(time.perf_counter() - begin, 3),
    }
    if as_json:
        print_json(report)
        return
    console = make_console()
    console.print(
        f"Gram matrix: {K.shape[0]} x {K.shape[1]}, {K.dtype}, {counted(len(K.tiles), 'tile')} of up to "
        f"{counted(K.block, 'sequence')}"
    )
    if K.found:
        console.print(f"From an earlier run: {counted(K.found, 'tile')}")
    console.print(f"Time: {report['seconds']:.1f} s")
    console.print("Store:", str(out), soft_wrap=True)
