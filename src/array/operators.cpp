#include "weir/arithmetic.hpp"
#include "weir/device.hpp"
#include "weir/on.hpp"
#include "weir/stream.hpp"

namespace weir {

namespace {

/// The current stream of the device of the first array among the operands.
stream stream_for(const operand& a, const operand& b) {
    const operand& array = a.is_array() ? a : b;
    return current_stream(array.is_array() ? array.of_array().device() : cpu());
}

array made(binary_operation what, const operand& a, const operand& b) {
    const stream current = stream_for(a, b);
    return compute(on(current, a.is_array() ? a.where() : b.where()), what, a, b);
}

array& changed(binary_operation what, array& a, const operand& b) {
    const operand first(a, b.where());
    const stream current = stream_for(first, first);
    compute(on(current, b.where()), what, first, b, a);
    return a;
}

array made(unary_operation what, const operand& a) {
    const stream current = stream_for(a, a);
    return compute(on(current, a.where()), what, a.of_array());
}

}  // namespace

array operator+(const operand& a, const operand& b) { return made(binary_operation::add, a, b); }
array operator-(const operand& a, const operand& b) { return made(binary_operation::subtract, a, b); }
array operator*(const operand& a, const operand& b) { return made(binary_operation::multiply, a, b); }
array operator/(const operand& a, const operand& b) { return made(binary_operation::divide, a, b); }
array operator==(const operand& a, const operand& b) { return made(binary_operation::equal, a, b); }
array operator!=(const operand& a, const operand& b) { return made(binary_operation::not_equal, a, b); }
array operator<(const operand& a, const operand& b) { return made(binary_operation::less, a, b); }
array operator<=(const operand& a, const operand& b) { return made(binary_operation::less_equal, a, b); }
array operator>(const operand& a, const operand& b) { return made(binary_operation::greater, a, b); }
array operator>=(const operand& a, const operand& b) { return made(binary_operation::greater_equal, a, b); }
array operator&(const operand& a, const operand& b) { return made(binary_operation::bitwise_and, a, b); }
array operator|(const operand& a, const operand& b) { return made(binary_operation::bitwise_or, a, b); }
array operator^(const operand& a, const operand& b) { return made(binary_operation::bitwise_xor, a, b); }
array operator-(const operand& a) { return made(unary_operation::negative, a); }
array operator~(const operand& a) { return made(unary_operation::invert, a); }

array& array::operator+=(const operand& b) { return changed(binary_operation::add, *this, b); }
array& array::operator-=(const operand& b) { return changed(binary_operation::subtract, *this, b); }
array& array::operator*=(const operand& b) { return changed(binary_operation::multiply, *this, b); }
array& array::operator/=(const operand& b) { return changed(binary_operation::divide, *this, b); }
array& array::operator&=(const operand& b) { return changed(binary_operation::bitwise_and, *this, b); }
array& array::operator|=(const operand& b) { return changed(binary_operation::bitwise_or, *this, b); }
array& array::operator^=(const operand& b) { return changed(binary_operation::bitwise_xor, *this, b); }

}  // namespace weir
