package hl7

import (
	"github.com/healthlab-dev/healthlab/adapters/labs/hl7/er7"
	"github.com/healthlab-dev/healthlab/orders/labresult"
)

// term reads a coded value with all of its codes; nil if it is empty.
func term(p er7.Part) *labresult.Coded {
	c := p.Coded()
	out := labresult.Coded{Text: c.Display(), Codes: codesOf(c)}
	if out.Text == "" && out.Codes == nil {
		return nil
	}
	return &out
}

// terms reads the coded values of a repeating field.
func terms(p er7.Part) []labresult.Coded {
	var out []labresult.Coded
	for _, one := range p.Repetitions() {
		if t := term(one); t != nil {
			out = append(out, *t)
		}
	}
	return out
}

// codesOf returns the codes of a coded value.
func codesOf(c er7.Coded) []labresult.Code {
	var out []labresult.Code
	for _, code := range c.Codes {
		if code.Code != "" || code.Text != "" && code.Text != c.Display() {
			out = append(out, labresult.Code{Code: code.Code, Text: code.Text, System: code.System})
		}
	}
	return out
}
