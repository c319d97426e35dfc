#!/usr/bin/env bash
# Makes the pictures of docs/timeline.md and of the README anew, in a headless Chromium. Usage: timeline_images.sh BUILD [TIMELINE],
# a build directory with the examples, and the timeline.html of the demonstration on a GPU, for the picture in docs/cuda.md.
# Needs chromium, and pngquant to make the files small.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

build=$(realpath "${1:?usage: timeline_images.sh BUILD [TIMELINE]}")
images=$PWD/docs/images
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || {
    echo "timeline_images.sh: install chromium" >&2
    exit 1
}

# picture NAME WIDTH,HEIGHT THEME WHAT: the page in a browser of that colour theme, as a person sees it, at the place WHAT. The theme
# is not part of the address: that would read it a second time, and hide what a first look lacks.
picture() {
    local preferred=1
    [ "$3" = light ] || preferred=0
    "$browser" --headless --no-sandbox --disable-gpu --hide-scrollbars --force-color-profile=srgb \
        --user-data-dir="$folder/profile" --virtual-time-budget=3000 --window-size="$2" \
        --blink-settings=preferredColorScheme=$preferred \
        --screenshot="$folder/$1" "file://$folder/weir-timeline.html#$4" 2>/dev/null
    pngquant --force --output "$images/$1" 128 "$folder/$1"
    printf '%s: %s bytes\n' "docs/images/$1" "$(stat -c %s "$images/$1")"
}

if [ -n "${2:-}" ]; then
    cp "$2" "$folder/weir-timeline.html"
    picture timeline-gpu.png 1280,600 light "from=5e6&to=5.7e6"
fi
"$build/examples/example-timeline" "$folder"
picture timeline.png 1280,600 light "elided"
picture timeline-operation.png 1280,600 dark "at=2:4&from=0&to=72e6"
