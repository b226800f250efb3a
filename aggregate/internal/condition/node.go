package condition

// Cond is a node of a condition.
type Cond interface{ isCond() }

// The nodes of a condition.
type (
	// And is true if both sides are.
	And struct{ Left, Right Cond }
	// Or is true if at least one side is.
	Or struct{ Left, Right Cond }
	// Not negates a condition.
	Not struct{ Of Cond }
	// Compare compares two operands; Op is one of = != < <= > >=.
	Compare struct {
		Op          string
		Left, Right Operand
	}
	// Null is IS NULL, or IS NOT NULL.
	Null struct {
		Of  Operand
		Not bool
	}
	// In is IN or NOT IN with a list of literals.
	In struct {
		Of   Operand
		List []Operand
		Not  bool
	}
	// Bool is a boolean column or literal without a comparison.
	Bool struct{ Of Operand }
)

// Operand is a column or a literal.
type Operand struct {
	Kind byte // c column, s string, n number, b boolean
	// Text is the column's name after the full stop, the string, or the number as written.
	Text string
	// Table is the name before the full stop of a column; Two is true if there is one.
	Table string
	Two   bool
	// Yes is the value of a boolean.
	Yes bool
	// At is the offset in the text, in bytes.
	At int
}

func (And) isCond()     {}
func (Or) isCond()      {}
func (Not) isCond()     {}
func (Compare) isCond() {}
func (Null) isCond()    {}
func (In) isCond()      {}
func (Bool) isCond()    {}
