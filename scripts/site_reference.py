"""For mkdocs: takes what Doxygen has made of the headers, build/reference, into the site as api/.

So links to the reference are checked like all others.
"""

from pathlib import Path

from mkdocs.structure.files import File


def on_files(files, config):
    reference = Path(config.config_file_path).parent / "build" / "reference"
    if not (reference / "index.html").is_file():
        raise SystemExit("build/reference is not there: run ./run docs, or doxygen docs/Doxyfile before mkdocs")
    for path in sorted(reference.rglob("*")):
        if path.is_file():
            name = "api/" + path.relative_to(reference).as_posix()
            files.append(File.generated(config, name, abs_src_path=str(path)))
    return files
