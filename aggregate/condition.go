package aggregate

import "github.com/healthlab-dev/healthlab/aggregate/internal/condition"

// Condition is a parsed condition of a query: what stands in Query.Where.
type Condition struct{ root condition.Cond }

// ParseWhere reads a condition, without asking whether its columns exist. The fault is
// healthlab.Invalid with code where_syntax; its context names the offset, in bytes.
func ParseWhere(text string) (Condition, error) {
	c, fault := condition.Parse(text)
	if fault != nil {
		var r reader
		r.Problems = append(r.Problems, fault.Problem(nil))
		return Condition{}, r.Problems.Err()
	}
	return Condition{c}, nil
}

// String writes the condition with no more parentheses than it needs. Parsing it
// again gives the same condition.
func (c Condition) String() string {
	if c.root == nil {
		return ""
	}
	return condition.Spell(c.root)
}
