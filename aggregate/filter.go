package aggregate

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/healthlab-dev/healthlab"
)

// filter is a checked condition. It works on a whole batch at a time, with three
// values: a comparison with a null is neither true nor false.
type filter interface {
	// eval sets out[i] for the rows of b.
	eval(b *batch, out []tri)
}

// tri is false, unknown or true, in that order: AND is the smaller of two, OR the
// larger.
type tri uint8

const (
	isFalse tri = iota
	isUnknown
	isTrue
)

func triOf(b bool) tri {
	if b {
		return isTrue
	}
	return isFalse
}

type (
	andFilter struct{ left, right filter }
	orFilter  struct{ left, right filter }
	notFilter struct{ of filter }
	// compareFilter compares two values of one class.
	compareFilter struct {
		op          string
		class       class
		left, right value
	}
	nullFilter struct {
		slot int // -1 for a literal, which is not null
		not  bool
	}
	inFilter struct {
		class class
		slot  int
		not   bool
		nums  []float64
		ints  []int64
		texts []string
	}
	boolFilter struct {
		slot int // -1 for a literal
		yes  bool
	}
)

// class is what values have to have in common to be compared.
type class uint8

const (
	classNone    class = iota
	classInt           // two integers
	classNumber        // numbers, one of them a float64
	classText          // strings
	classBool          // booleans
	classTime          // wall-clock times
	classInstant       // instants
	classDate          // days
)

// value is a slot, or a literal.
type value struct {
	slot int // -1 for a literal
	num  float64
	int  int64
	text string
}

func (f andFilter) eval(b *batch, out []tri) { join(b, out, f.left, f.right, true) }
func (f orFilter) eval(b *batch, out []tri)  { join(b, out, f.left, f.right, false) }

func join(b *batch, out []tri, left, right filter, and bool) {
	left.eval(b, out)
	other := b.scratch()
	defer b.done(other)
	right.eval(b, other)
	for i, o := range other {
		if and == (o < out[i]) {
			out[i] = o
		}
	}
}

func (f notFilter) eval(b *batch, out []tri) {
	f.of.eval(b, out)
	for i := range out {
		out[i] = isTrue - out[i]
	}
}

func (f nullFilter) eval(b *batch, out []tri) {
	if f.slot < 0 {
		fillTri(out, triOf(f.not))
		return
	}
	v := &b.cols[f.slot]
	for i := range out {
		out[i] = triOf(v.isNull(i) != f.not)
	}
}

func (f boolFilter) eval(b *batch, out []tri) {
	if f.slot < 0 {
		fillTri(out, triOf(f.yes))
		return
	}
	v := &b.cols[f.slot]
	for i := range out {
		out[i] = isUnknown
		if !v.isNull(i) {
			out[i] = triOf(v.ints[i] != 0)
		}
	}
}

func fillTri(out []tri, t tri) {
	for i := range out {
		out[i] = t
	}
}

func (f compareFilter) eval(b *batch, out []tri) {
	lo, eq, hi := verdicts(f.op)
	put := func(i, c int) {
		switch {
		case c < 0:
			out[i] = lo
		case c > 0:
			out[i] = hi
		default:
			out[i] = eq
		}
	}
	for i := range out {
		if f.left.isNull(b, i) || f.right.isNull(b, i) {
			out[i] = isUnknown
			continue
		}
		switch f.class {
		case classNumber:
			put(i, compareFloat(f.left.number(b, i), f.right.number(b, i)))
		case classText:
			put(i, strings.Compare(f.left.string(b, i), f.right.string(b, i)))
		default:
			put(i, compareInt(f.left.integer(b, i), f.right.integer(b, i)))
		}
	}
}

// verdicts are what an operator says of less, equal and more.
func verdicts(op string) (lo, eq, hi tri) {
	switch op {
	case "=":
		return isFalse, isTrue, isFalse
	case "!=":
		return isTrue, isFalse, isTrue
	case "<":
		return isTrue, isFalse, isFalse
	case "<=":
		return isTrue, isTrue, isFalse
	case ">":
		return isFalse, isFalse, isTrue
	default:
		return isFalse, isTrue, isTrue
	}
}

func compareFloat(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	default:
		return 0
	}
}

func compareInt(a, b int64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	default:
		return 0
	}
}

func (v *value) isNull(b *batch, i int) bool { return v.slot >= 0 && b.cols[v.slot].isNull(i) }

func (v *value) number(b *batch, i int) float64 {
	if v.slot < 0 {
		return v.num
	}
	c := &b.cols[v.slot]
	if c.typ == typeInt {
		return float64(c.ints[i])
	}
	return c.floats[i]
}

func (v *value) integer(b *batch, i int) int64 {
	if v.slot < 0 {
		return v.int
	}
	return b.cols[v.slot].ints[i]
}

func (v *value) string(b *batch, i int) string {
	if v.slot < 0 {
		return v.text
	}
	return b.cols[v.slot].texts[i]
}

func (f inFilter) eval(b *batch, out []tri) {
	v := &b.cols[f.slot]
	for i := range out {
		if v.isNull(i) {
			out[i] = isUnknown
			continue
		}
		var found bool
		switch f.class {
		case classNumber:
			x := value{slot: f.slot}
			found = slices.Contains(f.nums, x.number(b, i))
		case classText:
			found = slices.Contains(f.texts, v.texts[i])
		default:
			found = slices.Contains(f.ints, v.ints[i])
		}
		out[i] = triOf(found != f.not)
	}
}

// names finds what a name in a condition stands for.
type names func(o operand) (slot int, typ Type, fault *whereFault)

// checker turns a parsed condition into a filter and gathers its faults.
type checker struct {
	names  names
	faults []*whereFault
}

const (
	codeMismatch = "where_type_mismatch"
	codeLiteral  = "where_bad_literal"
	codeColumn   = "unknown_column"
)

func (c *checker) fail(code, msg string, at int) {
	c.faults = append(c.faults, &whereFault{code: code, msg: msg, at: at})
}

func (c *checker) filter(n cond) filter {
	switch n := n.(type) {
	case andCond:
		return andFilter{c.filter(n.left), c.filter(n.right)}
	case orCond:
		return orFilter{c.filter(n.left), c.filter(n.right)}
	case notCond:
		return notFilter{c.filter(n.of)}
	case compareCond:
		return c.compare(n)
	case nullCond:
		slot := -1
		if n.of.kind == 'c' {
			slot, _, _ = c.column(n.of)
		}
		return nullFilter{slot, n.not}
	case inCond:
		return c.in(n)
	case boolCond:
		if n.of.kind == 'b' {
			return boolFilter{-1, n.of.yes}
		}
		slot, typ, ok := c.column(n.of)
		if ok && typ != typeBool {
			c.fail(codeMismatch, "stands alone and is not a boolean", n.of.at)
		}
		return boolFilter{slot: slot}
	default:
		return boolFilter{slot: -1}
	}
}

func (c *checker) column(o operand) (slot int, typ Type, ok bool) {
	slot, typ, fault := c.names(o)
	if fault != nil {
		fault.at = o.at
		c.faults = append(c.faults, fault)
		return 0, "", false
	}
	return slot, typ, true
}

func (c *checker) compare(n compareCond) filter {
	out := compareFilter{op: n.op, left: value{slot: -1}, right: value{slot: -1}}
	var types [2]Type
	ok := true
	for i, side := range [...]struct {
		o operand
		v *value
	}{{n.left, &out.left}, {n.right, &out.right}} {
		if side.o.kind == 'c' {
			var is bool
			side.v.slot, types[i], is = c.column(side.o)
			ok = ok && is
		}
	}
	if !ok {
		return out
	}
	switch {
	case n.right.kind != 'c':
		out.class, ok = c.literal(types[0], n.right, &out.right)
	case n.left.kind != 'c':
		out.class, ok = c.literal(types[1], n.left, &out.left)
	default:
		if out.class = classOf(types[0], types[1]); out.class == classNone {
			c.fail(codeMismatch, "compares values of different types", n.left.at)
			ok = false
		}
	}
	if ok && out.class == classBool && n.op != "=" && n.op != "!=" {
		c.fail(codeMismatch, "booleans are only equal or not", n.left.at)
	}
	return out
}

// classOf returns what two columns are compared as.
func classOf(a, b Type) class {
	number := func(t Type) bool { return t == typeInt || t == typeFloat }
	switch {
	case a == typeInt && b == typeInt:
		return classInt
	case number(a) && number(b):
		return classNumber
	case a != b:
		return classNone
	case a == typeText:
		return classText
	case a == typeBool:
		return classBool
	case a == typeTime:
		return classTime
	case a == typeInstant:
		return classInstant
	case a == typeDate:
		return classDate
	default:
		return classNone
	}
}

// literal reads a literal as a value that a column of type t can be compared with.
func (c *checker) literal(t Type, o operand, v *value) (class, bool) {
	mismatch := func() (class, bool) {
		c.fail(codeMismatch, "is not of the type of the column", o.at)
		return classNone, false
	}
	switch t {
	case typeInt, typeFloat:
		if o.kind != 'n' {
			return mismatch()
		}
		x, err := strconv.ParseFloat(o.text, 64)
		if err != nil {
			c.fail(codeLiteral, "is not a number that can be", o.at)
			return classNone, false
		}
		v.num = x
		if i, err := strconv.ParseInt(o.text, 10, 64); t == typeInt && err == nil {
			v.int = i
			return classInt, true
		}
		return classNumber, true
	case typeText:
		if o.kind != 's' {
			return mismatch()
		}
		v.text = o.text
		return classText, true
	case typeBool:
		if o.kind != 'b' {
			return mismatch()
		}
		if o.yes {
			v.int = 1
		}
		return classBool, true
	case typeTime, typeInstant, typeDate:
		if o.kind != 's' {
			return mismatch()
		}
		i, ok := timeLiteral(o.text, t)
		if !ok {
			c.fail(codeLiteral, "is not a date or time of the kind that the column has", o.at)
			return classNone, false
		}
		v.int = i
		return map[Type]class{typeTime: classTime, typeInstant: classInstant, typeDate: classDate}[t], true
	default:
		return mismatch()
	}
}

// timeLiteral reads a day, or a day and a clock time. Only an instant may have an
// offset.
func timeLiteral(s string, t Type) (int64, bool) {
	if d, err := healthlab.ParseDate(s); err == nil {
		if t == typeDate {
			return dayStart(d) / day, true
		}
		return dayStart(d), true
	}
	if t == typeDate || len(s) < 16 || s[10] != 'T' && s[10] != ' ' {
		return 0, false
	}
	if len(s) == 16 || s[16] != ':' {
		s = s[:16] + ":00" + s[16:]
	}
	at, _, err := healthlab.ParseTimeOffset(s)
	if err != nil || t == typeTime && strings.ContainsAny(s[11:], "Zz+-") {
		return 0, false
	}
	return at.UnixMicro(), true
}

func (c *checker) in(n inCond) filter {
	slot, typ, ok := c.column(n.of)
	out := inFilter{slot: slot, not: n.not}
	if !ok {
		return out
	}
	number := false
	for _, o := range n.list {
		v := value{slot: -1}
		cl, ok := c.literal(typ, o, &v)
		if !ok {
			continue
		}
		out.class = cl
		number = number || cl == classNumber
		out.nums = append(out.nums, v.num)
		out.ints = append(out.ints, v.int)
		out.texts = append(out.texts, v.text)
	}
	if number {
		out.class = classNumber
	}
	return out
}

// bounds are what values a filter on one number lets through, both ends inclusive.
type bounds struct {
	slot    int
	least   float64
	most    float64
	nothing bool // no value passes
}

// rangeOf returns the bounds that a filter is, if it is nothing but comparisons of one
// slot with numbers, all of which must hold.
func rangeOf(f filter, isValue func(slot int) bool) (bounds, bool) {
	b := bounds{slot: -1, least: math.Inf(-1), most: math.Inf(1)}
	ok := b.narrow(f, isValue)
	b.nothing = b.least > b.most
	return b, ok && b.slot >= 0
}

func (b *bounds) narrow(f filter, isValue func(int) bool) bool {
	switch f := f.(type) {
	case andFilter:
		return b.narrow(f.left, isValue) && b.narrow(f.right, isValue)
	case compareFilter:
		slot, x, op := f.left.slot, f.right.num, f.op
		if f.left.slot < 0 {
			slot, x, op = f.right.slot, f.left.num, mirrored(f.op)
		} else if f.right.slot >= 0 {
			return false
		}
		if f.class != classNumber || !isValue(slot) || b.slot >= 0 && b.slot != slot {
			return false
		}
		b.slot = slot
		switch op {
		case "=":
			b.least, b.most = max(b.least, x), min(b.most, x)
		case "<":
			b.most = min(b.most, math.Nextafter(x, math.Inf(-1)))
		case "<=":
			b.most = min(b.most, x)
		case ">":
			b.least = max(b.least, math.Nextafter(x, math.Inf(1)))
		case ">=":
			b.least = max(b.least, x)
		default:
			return false
		}
		return true
	default:
		return false
	}
}

// mirrored is the operator with its sides changed over.
func mirrored(op string) string {
	switch op {
	case "<":
		return ">"
	case "<=":
		return ">="
	case ">":
		return "<"
	case ">=":
		return "<="
	default:
		return op
	}
}

// settle works out what a filter says where some text slots have one value: the answer
// if it is known, else what is left to ask.
func settle(f filter, known func(slot int) (text string, null, ok bool)) (rest filter, answer tri) {
	switch f := f.(type) {
	case andFilter, orFilter:
		return settlePair(f, known)
	case notFilter:
		rest, a := settle(f.of, known)
		if rest != nil {
			return notFilter{rest}, 0
		}
		return nil, isTrue - a
	case boolFilter:
		if f.slot < 0 {
			return nil, triOf(f.yes)
		}
	case nullFilter:
		if f.slot < 0 {
			return nil, triOf(f.not)
		}
		if _, null, ok := known(f.slot); ok {
			return nil, triOf(null != f.not)
		}
	case inFilter:
		if f.class != classText {
			break
		}
		if s, null, ok := known(f.slot); ok {
			if null {
				return nil, isUnknown
			}
			return nil, triOf(slices.Contains(f.texts, s) != f.not)
		}
	case compareFilter:
		if f.class == classText {
			return settleText(f, known)
		}
	}
	return f, 0
}

func settlePair(f filter, known func(int) (string, bool, bool)) (filter, tri) {
	and, isAnd := f.(andFilter)
	left, right := and.left, and.right
	ends := isFalse // the answer that decides alone
	if or, ok := f.(orFilter); ok {
		left, right, ends = or.left, or.right, isTrue
	}
	l, a := settle(left, known)
	r, b := settle(right, known)
	switch {
	case l == nil && a == ends, r == nil && b == ends:
		return nil, ends
	case l == nil && r == nil:
		if isAnd {
			return nil, min(a, b)
		}
		return nil, max(a, b)
	case l == nil && a == isTrue-ends:
		return r, 0
	case r == nil && b == isTrue-ends:
		return l, 0
	}
	if l == nil {
		l = constant(a)
	}
	if r == nil {
		r = constant(b)
	}
	if isAnd {
		return andFilter{l, r}, 0
	}
	return orFilter{l, r}, 0
}

// constant is a filter with one answer.
type constant tri

func (c constant) eval(_ *batch, out []tri) { fillTri(out, tri(c)) }

func settleText(f compareFilter, known func(int) (string, bool, bool)) (filter, tri) {
	var texts [2]string
	for i, v := range [...]value{f.left, f.right} {
		texts[i] = v.text
		if v.slot < 0 {
			continue
		}
		s, null, ok := known(v.slot)
		if !ok {
			return f, 0
		}
		if null {
			return nil, isUnknown
		}
		texts[i] = s
	}
	lo, eq, hi := verdicts(f.op)
	switch strings.Compare(texts[0], texts[1]) {
	case -1:
		return nil, lo
	case 1:
		return nil, hi
	default:
		return nil, eq
	}
}
