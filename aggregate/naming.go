package aggregate

import (
	"slices"
)

// sources decides what becomes of several sources of the same thing.
func (c *compiler) sources(config *Config) {
	p := c.plan
	isSource := func(slot int) bool {
		return p.slots[slot].name == "source_provider" || p.slots[slot].name == "source_type"
	}
	provider, sourceType := false, false
	for _, k := range p.keys {
		if k.kind == keySlot {
			name := p.slots[k.slot].name
			provider = provider || name == "source_provider"
			sourceType = sourceType || name == "source_type"
		}
	}
	split := provider && sourceType
	selected := false // a source column is asked for as a value
	for _, o := range p.outs {
		selected = selected || o.kind == outSlot && isSource(o.n) || o.kind == outAgg && isSource(p.aggs[o.n].slot)
	}
	policy := config.OverlapPolicy
	if policy == "" {
		policy = MergeSources
	}
	if policy == MergeSources && selected {
		policy = WinnerOnly // which source it is would be lost in a merged row
	}
	off := split || p.table.name == readinessTable || policy == AllSources
	p.merge = !off && policy == MergeSources
	p.chosen = !off && p.grouped && (policy == WinnerOnly || policy == FillGaps)
	p.fill = p.chosen && p.sampleTable() && policy == FillGaps
	if split {
		c.qualify()
	}
}

// names gives the columns of the result their names.
func (c *compiler) names(config *Config) {
	p := c.plan
	if config.ColumnNaming == QualifiedNames {
		c.qualify()
	}
	keys := 0
	for i := range p.outs {
		o := &p.outs[i]
		if o.kind != outKey {
			continue
		}
		o.name = groupKeyName(o.n)
		o.typ = p.keys[o.n].typ
		keys++
	}
	// Aggregates that share a short name are qualified, all of them.
	short := map[string]int{}
	for _, o := range p.outs {
		short[o.name]++
	}
	for i := range p.outs {
		if o := &p.outs[i]; o.kind == outAgg && short[o.name] > 1 {
			o.name = c.qualified(o)
		}
	}
	seen := map[string]bool{"index": true}
	for i := range p.outs {
		if seen[p.outs[i].name] {
			c.fail("duplicate_output_column", "makes two columns of one name", c.at.At("select"))
			return
		}
		seen[p.outs[i].name] = true
	}
}

func (c *compiler) qualify() {
	for i := range c.plan.outs {
		if o := &c.plan.outs[i]; o.kind == outAgg {
			o.name = c.qualified(o)
		}
	}
}

func (c *compiler) qualified(o *out) string {
	a := c.plan.aggs[o.n]
	full := Aggregate{Func: a.fn, Low: a.low, High: a.high}
	return full.label() + "." + a.base
}

func (c *compiler) checkAlign() {
	a, p := c.q.Align, c.plan
	if a == nil {
		return
	}
	at := c.at.At("align")
	if !slices.Contains(alignModes, string(a.Mode)) {
		c.fail(codeBody, "is not a mode", at)
		return
	}
	if p.trunc < 0 {
		c.r.Fault("align_invalid", "needs exactly one date truncation", at)
		return
	}
	selected := map[int]bool{}
	for _, o := range p.outs {
		if o.kind == outKey {
			selected[o.n] = true
		}
	}
	for i, k := range p.keys {
		if k.kind == keyPart {
			c.r.Fault("align_invalid", "does not go with a date part", at)
		}
		if !selected[i] {
			c.r.Fault("align_invalid", "needs every group key to be selected", at)
			break
		}
	}
	if l := a.Limit; l != nil {
		if !slices.Contains(units, string(l.Unit)) {
			c.fail(codeBody, "is not a period", at)
		} else if l.rough() < p.keys[p.trunc].period.rough() {
			c.r.Fault("align_invalid", "reaches less far than one bucket", at.At("carry"))
		}
	}
}

// rough is the length of a period with months of 30 days and years of 365, in minutes.
func (p Period) rough() int64 {
	switch p.Unit {
	case Month:
		return p.count() * 30 * day / minute
	case Year:
		return p.count() * 365 * day / minute
	default:
		return p.count() * (p.width() / minute)
	}
}
