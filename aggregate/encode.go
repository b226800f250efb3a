package aggregate

import (
	"strconv"
)

// MarshalJSON writes the request as in the HTTP API. Decoding the result gives an equal request.
func (r Request) MarshalJSON() ([]byte, error) {
	b := append([]byte(nil), `{"timeframe":{"type":"relative","anchor":`...)
	b = appendText(b, r.Timeframe.Anchor.String())
	b = append(b, `,"past":`...)
	b = r.Timeframe.Past.append(b)
	b = append(b, `},"queries":[`...)
	for i := range r.Queries {
		if i > 0 {
			b = append(b, ',')
		}
		b = r.Queries[i].append(b)
	}
	b = append(b, ']')
	if c := r.Config.append(nil); len(c) > 2 {
		b = append(append(b, `,"config":`...), c...)
	}
	return append(b, '}'), nil
}

// MarshalJSON writes the query as in the HTTP API.
func (q Query) MarshalJSON() ([]byte, error) { return q.append(nil), nil }

// MarshalJSON writes the config as in the HTTP API.
func (c Config) MarshalJSON() ([]byte, error) { return c.append(nil), nil }

func (q *Query) append(b []byte) []byte {
	b = append(b, `{"select":`...)
	b = appendExprs(b, q.Select)
	if len(q.GroupBy) > 0 {
		b = append(b, `,"group_by":`...)
		b = appendExprs(b, q.GroupBy)
	}
	if q.Where != "" {
		b = append(b, `,"where":`...)
		b = appendText(b, q.Where)
	}
	if q.Align != nil {
		b = append(b, `,"align":{"carry":{"mode":`...)
		b = appendText(b, string(q.Align.Mode))
		if q.Align.Limit != nil {
			name := `,"max_age":`
			if q.Align.Mode == CarryNearest {
				name = `,"span":`
			}
			b = append(b, name...)
			b = q.Align.Limit.append(b)
		}
		b = append(b, '}', '}')
	}
	for i := range q.Joins {
		if i == 0 {
			b = append(b, `,"join":`...)
		}
		b = q.Joins[i].append(append(b, "[,"[min(i, 1)]))
	}
	if len(q.Joins) > 0 {
		b = append(b, ']')
	}
	return append(b, '}')
}

func (j *Join) append(b []byte) []byte {
	b = appendText(append(b, `{"as":`...), j.As)
	b = append(b, `,"select":`...)
	b = appendExprs(b, j.Select)
	if j.Where != "" {
		b = appendText(append(b, `,"where":`...), j.Where)
	}
	if j.AsOf != nil {
		b = append(j.AsOf.MaxAge.append(append(b, `,"asof":{"max_age":`...)), '}')
	}
	return append(b, '}')
}

func (c *Config) append(b []byte) []byte {
	b = append(b, '{')
	key := func(name string) {
		if b[len(b)-1] != '{' {
			b = append(b, ',')
		}
		b = append(appendText(b, name), ':')
	}
	if len(c.ProviderPriorityOverrides) > 0 {
		key("provider_priority_overrides")
		for i, s := range c.ProviderPriorityOverrides {
			b = appendText(append(b, "[,"[min(i, 1)]), s)
		}
		b = append(b, ']')
	}
	if c.ColumnNaming != "" {
		key("column_naming")
		b = appendText(b, string(c.ColumnNaming))
	}
	if c.OverlapPolicy != "" {
		key("overlap_policy")
		b = appendText(b, string(c.OverlapPolicy))
	}
	if c.Explain {
		key("explain")
		b = append(b, "true"...)
	}
	return append(b, '}')
}

// MarshalJSON writes the period as in the HTTP API.
func (p Period) MarshalJSON() ([]byte, error) { return p.append(nil), nil }

func (p Period) append(b []byte) []byte {
	b = append(b, `{"unit":`...)
	b = appendText(b, string(p.Unit))
	b = append(b, `,"value":`...)
	b = strconv.AppendInt(b, p.count(), 10)
	return append(b, '}')
}

func appendExprs(b []byte, list []Expr) []byte {
	b = append(b, '[')
	for i, e := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = e.append(b)
	}
	return append(b, ']')
}

func (a Aggregate) append(b []byte) []byte {
	b = append(b, `{"func":`...)
	b = appendText(b, string(a.Func))
	b = append(b, `,"arg":`...)
	b = a.Arg.append(b)
	if a.Low != nil {
		b = appendFloat(append(b, `,"low":`...), *a.Low)
	}
	if a.High != nil {
		b = appendFloat(append(b, `,"high":`...), *a.High)
	}
	if a.Band != "" {
		b = appendText(append(b, `,"band":`...), string(a.Band))
	}
	return append(b, '}')
}

func (k GroupKey) append(b []byte) []byte {
	b = append(b, `{"group_key":`...)
	if k.All {
		return append(b, `"*"}`...)
	}
	return append(strconv.AppendInt(b, int64(k.Offset), 10), '}')
}

func (m Macro) append(b []byte) []byte { return appendPair(b, "value_macro", m.Name) }

func (f Field) append(b []byte) []byte {
	b = append(b, `{"timeseries":`...)
	b = appendText(b, f.Resource)
	b = append(b, `,"field":`...)
	return append(appendText(b, f.Field), '}')
}

func (i Index) append(b []byte) []byte {
	if i.Table == "" {
		return append(b, `{"placeholder":true}`...)
	}
	return appendPair(b, "index", i.Table)
}

func (s SourceColumn) append(b []byte) []byte { return appendPair(b, "source", s.Name) }

func (c TableColumn) append(b []byte) []byte { return appendPair(b, c.Table, c.Column) }

func (t DateTrunc) append(b []byte) []byte {
	b = append(b, `{"date_trunc":`...)
	b = t.Period.append(b)
	b = append(b, `,"arg":`...)
	return append(t.Of.append(b), '}')
}

func (p DatePart) append(b []byte) []byte {
	b = append(b, `{"date_part":`...)
	b = appendText(b, string(p.Part))
	b = append(b, `,"arg":`...)
	return append(p.Of.append(b), '}')
}

func (s Subquery) append(b []byte) []byte {
	b = append(b, `{"select":{"func":`...)
	b = appendText(b, string(s.Func))
	b = append(b, `,"arg":`...)
	switch {
	case s.Arg == nil:
		b = append(b, "null"...)
	case s.Arg.List == "":
		b = append(b, `{"element":true}`...)
	default:
		b = append(b, `{"field_for":`...)
		b = appendText(b, s.Arg.Table)
		b = append(b, ',')
		b = append(appendText(b, s.Arg.List), ':')
		b = append(appendText(b, s.Arg.Field), '}')
	}
	b = append(b, `},"from":{"unnest":`...)
	b = append(s.From.append(b), '}')
	if s.Where != "" {
		b = append(b, `,"where":`...)
		b = appendText(b, s.Where)
	}
	return append(b, '}')
}

func (badExpr) append(b []byte) []byte { return append(b, "null"...) }

func appendPair(b []byte, key, value string) []byte {
	b = append(appendText(append(b, '{'), key), ':')
	return append(appendText(b, value), '}')
}
