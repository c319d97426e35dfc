// The program itself: work.hpp has the operations that it enqueues. Each stage works on a stream of its own, so that a block is
// loaded while the one before it is analysed, and so on.
//
// The lines that begin with `if (by_hand_)` are what a careful author of such a program writes today: for each array that
// one stream fills and another uses, a wait before it is used, and one before it is filled again. Act 1 runs without
// them, act 2 with them. Act 3 runs without them, too, but lets Weir order the streams.
#include "cli/demo/pipeline.hpp"

namespace weir::demo {

completion pipeline::load(std::int64_t block) {
    place& p = place_of(block);
    const stream& load = stream_of(stage::load, block);
    const array samples = recording_.slice(block * cut_.step(), block * cut_.step() + cut_.span());

    if (by_hand_) load.wait(p.windowed);  // the former samples, before they are overwritten
    completion end = copy(on(load).label("load"), p.samples, samples);
    if (by_hand_) p.loaded.record(load);
    return end;
}

completion pipeline::analyse(std::int64_t block) {
    place& p = place_of(block);
    const stream& analyse = stream_of(stage::analyse, block);

    if (by_hand_) analyse.wait(p.loaded);
    work_.window(on(analyse).label("window"), p.samples, p.frames);
    if (by_hand_) p.windowed.record(analyse);

    if (by_hand_) analyse.wait(p.synthesised);  // the former spectra
    completion end = work_.transform(on(analyse).label("transform"), p.frames, p.spectrum);
    if (by_hand_) p.transformed.record(analyse);
    return end;
}

completion pipeline::filter(std::int64_t block) {
    place& p = place_of(block);
    const stream& filter = stream_of(stage::filter, block);

    if (by_hand_) filter.wait(p.transformed);
    completion end = work_.keep_tones(on(filter).label("filter"), p.spectrum, level_);
    if (by_hand_) p.filtered.record(filter);
    return end;
}

completion pipeline::synthesise(std::int64_t block) {
    place& p = place_of(block);
    const stream& synthesise = stream_of(stage::synthesise, block);

    if (by_hand_) synthesise.wait(p.filtered);
    if (by_hand_) synthesise.wait(p.added);  // the former frames
    completion end = work_.transform_back(on(synthesise).label("transform back"), p.spectrum, p.cleaned);
    if (by_hand_) p.synthesised.record(synthesise);
    return end;
}

completion pipeline::add(std::int64_t block) {
    place& p = place_of(block);
    const stream& add = stream_of(stage::add, block);
    sum& here = sum_of(block);
    sum& next = sum_of(block + 1);

    if (by_hand_) add.wait(p.synthesised);
    if (by_hand_) add.wait(next.stored);  // which also clears the sum
    completion end = work_.overlap_add(on(add).label("overlap-add"), p.cleaned, here.samples, next.samples);
    if (by_hand_) p.added.record(add);
    return end;
}

completion pipeline::store(std::int64_t block) {
    place& p = place_of(block);
    const stream& store = stream_of(stage::store, block);
    sum& here = sum_of(block);

    if (by_hand_) store.wait(p.added);
    array finished = result_.slice(block, block + 1);
    completion end = work_.store(on(store).label("store"), here.samples, finished);
    if (by_hand_) here.stored.record(store);
    return end;
}

}  // namespace weir::demo
