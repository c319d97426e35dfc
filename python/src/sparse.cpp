// Sparse systems of linear equations.
#include "weir/sparse.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "arguments.hpp"
#include "arrays.hpp"
#include "call_log.hpp"
#include "calls.hpp"
#include "labelling.hpp"
#include "weir/array.hpp"
#include "weir/error.hpp"
#include "weir/launch.hpp"
#include "work.hpp"

namespace weir::python {

namespace {

matrix_kind matrix_kind_from(nb::handle argument) {
    constexpr const char* wanted = "\"general\", \"symmetric\", \"hermitian\" or \"positive_definite\"";
    const std::string_view name = text_from(argument, "kind", wanted);
    if (name == "general") {
        return matrix_kind::general;
    }
    if (name == "symmetric") {
        return matrix_kind::symmetric;
    }
    if (name == "hermitian") {
        return matrix_kind::hermitian;
    }
    if (name == "positive_definite") {
        return matrix_kind::positive_definite;
    }
    throw argument_error("kind is " + repr_of(argument) + ": pass " + wanted);
}

matrix_triangle triangle_from(nb::handle argument) {
    constexpr const char* wanted = "\"full\", \"lower\" or \"upper\"";
    const std::string_view name = text_from(argument, "triangle", wanted);
    if (name == "full") {
        return matrix_triangle::full;
    }
    if (name == "lower") {
        return matrix_triangle::lower;
    }
    if (name == "upper") {
        return matrix_triangle::upper;
    }
    throw argument_error("triangle is " + repr_of(argument) + ": pass " + wanted);
}

std::string text_of(const nb::object& x) {
    const auto text = nb::steal<nb::str>(PyObject_Str(x.ptr()));
    if (!text.is_valid()) {
        nb::raise_python_error();
    }
    return text.c_str();
}

/// A sparse matrix of any package, in parts.
struct given_matrix {
    nb::object values;
    nb::object column_indices;
    nb::object row_offsets;
    nb::object shape;

    /// `of`: the shape for (data, indices, indptr), null or None if it was not given.
    given_matrix(nb::handle a, nb::handle of, const char* function) {
        const bool has_shape = of.is_valid() && !of.is_none();
        if (PyTuple_Check(a.ptr()) != 0 && PyTuple_GET_SIZE(a.ptr()) == 3) {
            values = a[0];
            column_indices = a[1];
            row_offsets = a[2];
            shape = has_shape ? nb::borrow(of) : square(row_offsets, function);
            return;
        }
        if (has_shape) {
            throw argument_error(std::string(function) + "() got shape=" + repr_of(of) +
                                 " beside a matrix that has one: pass it with (data, indices, indptr) alone");
        }
        if (PyTuple_Check(a.ptr()) != 0 && PyTuple_GET_SIZE(a.ptr()) == 4) {
            values = a[0];
            column_indices = a[1];
            row_offsets = a[2];
            shape = a[3];
            return;
        }
        if (nb::hasattr(a, "crow_indices") && nb::hasattr(a, "layout")) {  // PyTorch
            const std::string layout = text_of(a.attr("layout"));
            if (layout != "torch.sparse_csr") {
                throw argument_error(std::string(function) + "() got a tensor of layout " + layout +
                                     ": pass x.to_sparse_csr()");
            }
            values = a.attr("values")();
            column_indices = a.attr("col_indices")();
            row_offsets = a.attr("crow_indices")();
            shape = a.attr("shape");
            return;
        }
        if (nb::hasattr(a, "format") && nb::hasattr(a, "tocsr")) {  // SciPy, CuPy
            const std::string format = text_of(a.attr("format"));
            if (format != "csr") {
                throw argument_error(std::string(function) + "() got a sparse matrix of format \"" + format +
                                     "\": pass a.tocsr()");
            }
            values = a.attr("data");
            column_indices = a.attr("indices");
            row_offsets = a.attr("indptr");
            shape = a.attr("shape");
            return;
        }
        throw argument_type_error(std::string(function) + "() got " + repr_of(nb::type_name(a.type())) +
                                  " as the matrix: pass a matrix in compressed sparse rows of SciPy, CuPy or PyTorch, "
                                  "or (data, indices, indptr), shape=");
    }

private:
    /// As many columns as rows, of which `offsets` has one more.
    static nb::object square(nb::handle offsets, const char* function) {
        const Py_ssize_t count = PyObject_Length(offsets.ptr());
        if (count < 1) {
            PyErr_Clear();
            throw argument_error(
                std::string(function) +
                "() got (data, indices, indptr) whose indptr has no elements: it has one for each row, and "
                "the number of elements at its end");
        }
        return nb::make_tuple(count - 1, count - 1);
    }
};

/// A sparse matrix as the operand of calls.
class matrix_operand {
public:
    matrix_operand(nb::handle a, nb::handle of, const char* function, const source_location& where)
        : matrix_operand(given_matrix(a, of, function), function, where) {}

    [[nodiscard]] csr_matrix get() const { return {offsets_.get(), columns_.get(), elements_.get(), shape_}; }
    /// See call_operand::blocks.
    [[nodiscard]] bool blocks() const noexcept { return offsets_.blocks() || columns_.blocks() || elements_.blocks(); }
    /// @{
    /// Takes what lies in arrays of NumPy's as it is now: all of it, or the values alone.
    void copy_again(const source_location& where) {
        for (call_operand* const part : {&offsets_, &columns_, &elements_}) {
            copy_again(*part, where);
        }
    }
    void copy_values_again(const source_location& where) { copy_again(elements_, where); }
    /// @}

private:
    matrix_operand(const given_matrix& a, const char* function, const source_location& where)
        : offsets_(a.row_offsets, function, where),
          columns_(a.column_indices, function, where),
          elements_(a.values, function, where),
          shape_(shape_from(a.shape)) {}

    static void copy_again(call_operand& part, const source_location& where) {
        if (part.is_numpy()) {
            part.copy_again(where);
        }
    }

    call_operand offsets_;
    call_operand columns_;
    call_operand elements_;
    shape shape_;
};

/// What all calls take, as Python gives it.
struct solve_arguments {
    nb::handle kind;
    nb::handle triangle;
    nb::handle execution;
    nb::handle blocking;
    nb::handle shape;
    nb::handle memory_limit;
};

solve_options options_from(const solve_arguments& given) {
    return {matrix_kind_from(given.kind), triangle_from(given.triangle), execution_from(given.execution),
            blocking_from(given.blocking), memory_limit_from(given.memory_limit)};
}

nb::object call_solve(nb::handle a, nb::handle b, const solve_arguments& given, nb::handle on_) {
    const source_location where = here();
    solve_options how = options_from(given);
    const matrix_operand left(a, given.shape, "solve", where);
    const call_operand right(b, "solve", where);
    if (left.blocks() || right.blocks()) {
        how.blocking = call_blocking::always;
    }
    const stream to = right.stream_for(how.execution, on_);
    array x = waiting([&] { return weir::solve(on(to, where), left.get(), right.get(), how); });
    return right.result(std::move(x), nb::none(), where);
}

/// A solver, with its operands as Python has them.
class py_direct_solver {
public:
    py_direct_solver(nb::handle a, nb::handle b, const solve_arguments& given, nb::handle on_)
        : how_(options_from(given)), stream_(nb::borrow(on_)) {
        const source_location where = here();
        matrix_.emplace(a, given.shape, "DirectSolver", where);
        right_.emplace(b, "DirectSolver", where);
        if (matrix_->blocks() || right_->blocks()) {
            how_.blocking = call_blocking::always;
        }
        const csr_matrix left = matrix_->get();
        solver_.emplace(left, right_->get(), how_);
        home_ = right_->get().device();
        described_ = std::string(name_of(left.values.dtype())) + " " + left.shape.to_string() + " and " +
                     elements_in_words(right_->get()) + " on " + home_.name();
        if (!on_.is_none()) {
            static_cast<void>(chosen(on_));  // refuses at once what is no stream
        }
    }

    void plan(nb::handle on_, nb::handle label) {
        const logged_call logged("weir.sparse", "DirectSolver.plan");
        const labelled named(label);
        const one_at_a_time alone(mutex_);
        const source_location where = here();
        static_cast<void>(alive());
        const stream to = chosen(on_);
        if (matrix_) {
            matrix_->copy_again(where);
        }
        waiting([&] { alive().plan(on(to, where)); });
    }
    void factorize(nb::handle on_, nb::handle label) {
        const logged_call logged("weir.sparse", "DirectSolver.factorize");
        const labelled named(label);
        const one_at_a_time alone(mutex_);
        const source_location where = here();
        static_cast<void>(alive());
        const stream to = chosen(on_);
        if (matrix_) {
            matrix_->copy_values_again(where);
        }
        waiting([&] { alive().factorize(on(to, where)); });
    }
    nb::object solve(nb::handle on_, nb::handle label) {
        const logged_call logged("weir.sparse", "DirectSolver.solve");
        const labelled named(label);
        const one_at_a_time alone(mutex_);
        const source_location where = here();
        static_cast<void>(alive());
        const stream to = chosen(on_);
        if (right_ && right_->is_numpy()) {  // as it is now, not as it was when it was given
            right_->copy_again(where);
        }
        array x = waiting([&] { return alive().solve(on(to, where)); });
        return right_->result(std::move(x), nb::none(), where);
    }
    void reset_operands(nb::handle a, nb::handle b, nb::handle shape, nb::handle on_) {
        const one_at_a_time alone(mutex_);
        const source_location where = here();
        static_cast<void>(alive());
        if (!on_.is_none()) {
            static_cast<void>(stream_from(on_));  // the operands are read by the phases alone, on their streams
        }
        std::optional<matrix_operand> left;
        std::optional<call_operand> right;
        if (!a.is_none()) {
            left.emplace(a, shape, "reset_operands", where);
        } else if (!shape.is_none()) {
            throw argument_error("reset_operands() got a shape and no matrix: pass a=(data, indices, indptr)");
        }
        if (!b.is_none()) {
            right.emplace(b, "reset_operands", where);
        }
        const bool blocks = (left && left->blocks()) || (right && right->blocks());
        if (blocks && how_.blocking != call_blocking::always) {
            throw argument_type_error(
                "reset_operands() got arrays of NumPy or of another package on the CPU, whose calls block, and the "
                "solver is for others: make another DirectSolver, or pass weir.array(x)");
        }
        released([&] {
            if (left && right) {
                alive().reset_operands(left->get(), right->get());
            } else if (left) {
                alive().reset_operands(left->get());
            } else if (right) {
                alive().reset_operands(right->get());
            }
        });
        if (left) {
            matrix_ = std::move(left);
        }
        if (right) {
            right_ = std::move(right);
        }
    }
    void release_operands() {
        const one_at_a_time alone(mutex_);
        released([&] { alive().release_operands(); });
        matrix_.reset();
        right_.reset();
    }
    void free() noexcept {
        const one_at_a_time alone(mutex_);
        matrix_.reset();
        right_.reset();
        if (solver_) {
            const nb::gil_scoped_release no_gil;
            solver_.reset();
        }
    }

    [[nodiscard]] std::string to_string() const {
        const one_at_a_time alone(mutex_);
        if (!solver_) {
            return "<weir.sparse.DirectSolver freed>";
        }
        return "<weir.sparse.DirectSolver of " + described_ + (matrix_ && right_ ? ">" : ", released>");
    }

    [[nodiscard]] explanation explained() {
        const one_at_a_time alone(mutex_);
        const direct_solver& of = alive();
        return released([&] { return explain(of); });
    }

private:
    [[nodiscard]] direct_solver& alive() {
        if (!solver_) {
            throw state_error("the DirectSolver is freed: make another one");
        }
        return *solver_;
    }
    /// The stream that the call names, else the one that the solver was made with, else the current one.
    [[nodiscard]] stream chosen(nb::handle on_) {
        const nb::handle named = on_.is_none() ? nb::handle(stream_) : on_;
        return right_ ? right_->stream_for(how_.execution, named) : computing_stream(how_.execution, home_, named);
    }

    solve_options how_;
    nb::object stream_;
    std::optional<direct_solver> solver_;
    std::optional<matrix_operand> matrix_;
    std::optional<call_operand> right_;
    device home_ = cpu();    ///< where operands lie, or lay
    std::string described_;  ///< the operands, for repr()
    mutable nb::ft_mutex mutex_;
};

constexpr const char* solver_doc =
    "A sparse system A x = b that is analyzed once, factorized for each set of values, and solved for many right-hand "
    "sides.\n\n"
    ">>> with weir.sparse.DirectSolver(a, b) as s:\n...     s.plan()\n...     s.factorize()\n...     x = s.solve()\n"
    "...     s.reset_operands(b=c)\n...     y = s.solve(stream=other)\n\n"
    "`a`: a square matrix in compressed sparse rows of SciPy, CuPy or PyTorch, or (data, indices, indptr, shape); "
    "column\nindices increase within a row. `b`: (n,) or (n, k). Elements: float32, float64, complex64, complex128.\n"
    "`kind`: \"general\", \"symmetric\", \"hermitian\" or \"positive_definite\"; `triangle`: which elements of a "
    "matrix "
    "that is\nnot general are read.\n\n"
    "Streams may change from phase to phase without a word. What blocks the calling thread:\n\n"
    "                      arrays of Weir                 arrays of other packages, blocking=True,\n"
    "                                                     execution on another device\n"
    "plan, factorize       nothing: each is work of       each blocks until its work is over\n"
    "                      the stream\n"
    "solve                 nothing                        blocks until the solution is there\n\n"
    "On CUDA devices all phases run as host tasks: a thread of Weir's waits for cuDSS, and the stream waits for that "
    "thread,\nwhich streams of CuPy and PyTorch cannot. On the CPU Eigen solves, or MKL's PARDISO if "
    "WEIR_PARDISO_LIBRARY names\nits library.";

void bind_solver(nb::module_& m) {
    nb::class_<py_direct_solver>(m, "DirectSolver", nb::is_weak_referenceable(), solver_doc)
        .def(
            "__init__",
            [](py_direct_solver* self, nb::handle a, nb::handle b, nb::handle kind, nb::handle triangle,
               nb::handle execution, nb::handle blocking, nb::handle stream, nb::handle shape,
               nb::handle memory_limit) {
                new (self) py_direct_solver(a, b, {kind, triangle, execution, blocking, shape, memory_limit}, stream);
            },
            nb::arg("a").none(), nb::arg("b").none(), nb::kw_only(), nb::arg("kind").none() = "general",
            nb::arg("triangle").none() = "full", nb::arg("execution").none() = nb::none(),
            nb::arg("blocking").none() = "auto", nb::arg("stream").none() = nb::none(),
            nb::arg("shape").none() = nb::none(), nb::arg("memory_limit").none() = "80%",
            nb::sig("def __init__(self, a: Any, b: Any, /, *, kind: str = \"general\", triangle: str = \"full\", "
                    "execution: "
                    "Device | str | None = None, blocking: bool | str = \"auto\", stream: Any = None, shape: "
                    "tuple[int, int] | None = None, memory_limit: int | float | str = \"80%\") -> None"),
            "Describes the system and keeps `a` and `b`. `stream`: for the calls that are given none. `shape`: of a "
            "matrix that is (data, indices, indptr); without it, it is square. `memory_limit`: of the factors, and of "
            "copies of the "
            "operands where they lie elsewhere. Enqueues nothing.")
        .def("plan", &py_direct_solver::plan, nb::kw_only(), nb::arg("stream").none() = nb::none(),
             nb::arg("label").none() = nb::none(),
             nb::sig("def plan(self, *, stream: Any = None, label: str | None = None) -> None"),
             "Analyzes where the elements of the matrix are. To be called before factorize(), and again for a matrix "
             "that has "
             "its elements elsewhere.")
        .def("factorize", &py_direct_solver::factorize, nb::kw_only(), nb::arg("stream").none() = nb::none(),
             nb::arg("label").none() = nb::none(),
             nb::sig("def factorize(self, *, stream: Any = None, label: str | None = None) -> None"),
             "Factorizes the matrix with its values as they are at this point of the stream. To be called before "
             "solve(), and "
             "again when the values have changed. If the matrix is singular, a call that blocks raises OperationError; "
             "else "
             "what reads a solution does.")
        .def("solve", &py_direct_solver::solve, nb::kw_only(), nb::arg("stream").none() = nb::none(),
             nb::arg("label").none() = nb::none(),
             nb::sig("def solve(self, *, stream: Any = None, label: str | None = None) -> Any"),
             "Solves for the right-hand side as it is at this point of the stream, and returns the solution in the "
             "package of "
             "`b`. Raises StateError if the system is not factorized, released or freed.")
        .def("reset_operands", &py_direct_solver::reset_operands, nb::arg("a").none() = nb::none(),
             nb::arg("b").none() = nb::none(), nb::kw_only(), nb::arg("shape").none() = nb::none(),
             nb::arg("stream").none() = nb::none(),
             nb::sig("def reset_operands(self, a: Any = None, b: Any = None, *, shape: tuple[int, int] | None = None, "
                     "stream: Any = None) -> None"),
             "Holds another matrix, another right-hand side or both from now on. A matrix of the same structure needs "
             "factorize(), one of another structure plan() first.")
        .def(
            "release_operands", &py_direct_solver::release_operands,
            "Drops the operands, keeps analysis and factorization; pending work is not disturbed. May be called twice.")
        .def("__repr__", &py_direct_solver::to_string)
        .def("_explain", &py_direct_solver::explained, "For weir.explain.")
        .def("free", &py_direct_solver::free,
             "Drops operands, analysis and factorization; pending work is not disturbed. May be called twice.")
        .def(
            "__enter__", [](nb::handle self) { return nb::borrow(self); }, nb::sig("def __enter__(self) -> Self"))
        .def(
            "__exit__", [](py_direct_solver& self, nb::args /*unused*/) { self.free(); },
            nb::sig("def __exit__(self, *exception: object) -> None"));
}

}  // namespace

void bind_sparse(nb::module_& parent) {
    nb::module_ m = parent.def_submodule("sparse");
    m.def(
        "solve",
        [](nb::handle a, nb::handle b, nb::handle kind, nb::handle triangle, nb::handle execution, nb::handle blocking,
           nb::handle stream, nb::handle label, nb::handle shape, nb::handle memory_limit) {
            const logged_call logged("weir.sparse", "solve");
            const labelled named(label);
            return call_solve(a, b, {kind, triangle, execution, blocking, shape, memory_limit}, stream);
        },
        nb::arg("a").none(), nb::arg("b").none(), nb::kw_only(), nb::arg("kind").none() = "general",
        nb::arg("triangle").none() = "full", nb::arg("execution").none() = nb::none(),
        nb::arg("blocking").none() = "auto", nb::arg("stream").none() = nb::none(),
        nb::arg("label").none() = nb::none(), nb::arg("shape").none() = nb::none(),
        nb::arg("memory_limit").none() = "80%",
        nb::sig("def solve(a: Any, b: Any, /, *, kind: str = \"general\", triangle: str = \"full\", execution: Device "
                "| str | "
                "None = None, blocking: bool | str = \"auto\", stream: Any = None, label: str | None = None, shape: "
                "tuple[int, int] | None = None, memory_limit: int | float | str = \"80%\") -> Any"),
        "Solves A x = b for a sparse matrix and one or several right-hand sides, (n,) or (n, k). See DirectSolver for "
        "the "
        "arguments. Returns x in the package of `b`: for arrays of Weir once the work is enqueued; for GPU arrays of "
        "CuPy, "
        "PyTorch and others once the solution is there, since their stream cannot wait for the thread that solves; for "
        "arrays of packages on the CPU once it is computed.");
    bind_solver(m);
}

}  // namespace weir::python
