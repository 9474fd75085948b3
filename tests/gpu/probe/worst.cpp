// What bad tensors cost the device, beside healthy ones of the same shape.
#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/gpu/probe/table.h"

namespace numsan::gpu::probe {
namespace {

constexpr int kTurns = 7;

struct Work {
    std::vector<Table> tables;
    size_t hits = 0;  ///< slots of one run of them when bad
};

/// Device time of all tables, the ring emptied and what exact passes may take renewed for each turn. `hits`: how many
/// slots each turn has to leave. A turn that leaves fewer has no time: the phase goes on, and fails in the end.
std::vector<double> times_of(Phase& phase, const Stream& stream, const Work& work, size_t hits) {
    std::vector<double> times;
    const auto prepare = [&] { forget_debt(phase.subject, stream); };
    for (int turn = -1; turn < kTurns && !(turn > 1 && phase.is_over()); ++turn) {
        const double time = device_microseconds(stream, 1, prepare, [&](int) {
            for (const Table& table : work.tables) table.launch(stream);
        });
        const size_t found = take_hits(phase.subject).size();
        if (found > hits) throw Wrong(std::to_string(found) + " slots in the ring, not " + std::to_string(hits));
        if (found < hits) phase.data["missing_slots"] = phase.data["missing_slots"].get<size_t>() + hits - found;
        if (turn >= 0 && found == hits) times.push_back(time);
    }
    return times;
}

void set(const Buffer& buffer, const std::vector<size_t>& places, bool bad, const Stream& stream) {
    for (const size_t place : places) buffer.fill(bad ? 0xff : 0, place, 4, stream);
    stream.synchronize();
}

Json compared(const std::vector<double>& bad, const std::vector<double>& healthy) {
    const double base = median(healthy);
    return {{"microseconds", spread(bad)},
            {"healthy_microseconds", spread(healthy)},
            {"of_healthy", base > 0 && !bad.empty() ? Json(median(bad) / base) : Json(nullptr)}};
}

/// One NaN in a tensor of `bytes`, with inputs of its size.
void one_nan(Phase& phase, const Stream& stream, size_t bytes, int inputs, Json& rows) {
    Subject& subject = phase.subject;
    const size_t own = subject.fitting(bytes, 1 + inputs) == bytes ? size_t(inputs) : 1;  // else they share memory
    const Buffer buffer(bytes * (1 + own));
    buffer.fill(0, stream);
    const auto elements = int64_t(bytes / 4);
    std::vector<TensorView> views;
    for (int i = 0; i < inputs; ++i)
        views.push_back(Shaped(buffer.data(bytes * (1 + size_t(i) % own)), DType::Float32, elements).view);
    const Shaped shape(buffer.data(), DType::Float32, elements);  // of all of them
    for (TensorView& view : views) {
        view.sizes = shape.view.sizes;
        view.strides = shape.view.strides;
    }
    Work work;
    Table& table = work.tables.emplace_back(subject);
    const InputItems items = table.filler().add_inputs(views.data(), inputs);
    add_outputs(table.filler(), {shape.view}, 0, items);
    table.close();
    const std::vector<double> healthy = times_of(phase, stream, work, 0);
    for (const auto& [name, place] :
         {std::pair("first", size_t(0)), std::pair("middle", bytes / 8 * 4), std::pair("last", bytes - 4)}) {
        if (phase.is_over()) return;
        set(buffer, {place}, true, stream);
        Json row = compared(times_of(phase, stream, work, 1 + size_t(inputs)), healthy);
        set(buffer, {place}, false, stream);
        row.update(
            {{"what", "one NaN"}, {"bytes", bytes}, {"place", name}, {"inputs", inputs}, {"inputs_own_memory", own}});
        rows.push_back(row);
    }
}

/// The exact pass of a finite tensor, which is told all the same.
void told(Phase& phase, const Stream& stream, size_t bytes, Json& rows) {
    const Buffer buffer(bytes);
    buffer.fill(0, stream);
    Work exact, quick;
    exact.tables.push_back(table_of(phase.subject, buffer.data(), bytes, DType::Float32, kExact));
    quick.tables.push_back(table_of(phase.subject, buffer.data(), bytes, DType::Float32));
    const std::vector<double> healthy = times_of(phase, stream, quick, 0);
    Json row = compared(times_of(phase, stream, exact, 1), healthy);
    row.update({{"what", "told"}, {"bytes", bytes}});
    rows.push_back(row);
}

/// A step whose gradients are all bad: 100 of them, from 16 KB to 4 MB where the run allows.
void bad_gradients(Phase& phase, const Stream& stream, Json& rows) {
    constexpr int kGradients = 100;
    const double least = 16 << 10, most = std::max(least, double(phase.subject.fitting(size_t(4) << 20, kGradients)));
    std::vector<size_t> begins, sizes, places;
    size_t all = 0;
    for (int i = 0; i < kGradients; ++i) {
        const double bytes = least * std::pow(most / least, double(i) / (kGradients - 1));
        sizes.push_back(size_t(bytes) / 256 * 256);
        begins.push_back(all);
        places.push_back(all + sizes.back() / 8 * 4);
        all += sizes.back();
    }
    const Buffer buffer(all);
    buffer.fill(0, stream);
    Work work;
    for (size_t i = 0; i < begins.size();) {
        Table& table = work.tables.emplace_back(phase.subject);
        for (uint32_t number = 0; number < uint32_t(kBatchOutputs) && i < begins.size(); ++number, ++i) {
            const Shaped shaped(buffer.data(begins[i]), DType::Float32, int64_t(sizes[i] / 4));
            if (table.filler().add(shaped.view, number, number) != Admission::Added) throw Wrong("a table has no room");
        }
        table.close();
    }
    const std::vector<double> healthy = times_of(phase, stream, work, 0);
    set(buffer, places, true, stream);
    Json row = compared(times_of(phase, stream, work, kGradients), healthy);
    row.update({{"what", "100 bad gradients"}, {"bytes", all}, {"launches", work.tables.size()}});
    rows.push_back(row);
}

}  // namespace

void worst(Phase& phase) {
    const Stream stream;
    phase.data["what"] = "device time beside that of the same launches over finite values, warm";
    phase.data["missing_slots"] = 0;
    Json& rows = phase.data["rows"] = Json::array();
    bad_gradients(phase, stream, rows);
    phase.note();
    told(phase, stream, phase.subject.fitting(size_t(16) << 20, 2), rows);
    std::vector<size_t> sizes;
    for (const size_t wanted : {size_t(64) << 20, size_t(1) << 30}) sizes.push_back(phase.subject.fitting(wanted, 2));
    sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
    for (const size_t bytes : sizes) {
        for (const int inputs : {1, 8}) {
            if (phase.is_over()) break;
            one_nan(phase, stream, bytes, inputs, rows);
            phase.note();
        }
    }
    if (const Json& missing = phase.data["missing_slots"]; missing != 0)
        throw Wrong(missing.dump() + " slots are missing, though exact passes owed nothing before each turn");
    const Json& worst = *std::max_element(rows.begin(), rows.end(), [](const Json& a, const Json& b) {
        const auto share = [](const Json& row) {
            return row["of_healthy"].is_null() ? 0.0 : row["of_healthy"].get<double>();
        };
        return share(a) < share(b);
    });
    phase.line = std::to_string(rows.size()) + " cases; the worst takes " + brief(worst["of_healthy"]) +
                 " times its healthy twin: " + worst["what"].get<std::string>() + ", " + worst["bytes"].dump() +
                 " bytes";
}

}  // namespace numsan::gpu::probe
