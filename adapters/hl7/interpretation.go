package hl7

import (
	"strings"

	"github.com/healthlab-dev/healthlab/adapters/hl7/er7"
	"github.com/healthlab-dev/healthlab/orders"
)

// flags is what the standard's abnormal flags mean.
var flags = map[string]orders.Interpretation{
	"N": orders.Normal, "NEG": orders.Normal, "ND": orders.Normal, "NR": orders.Normal,
	"S": orders.Normal, "MS": orders.Normal, "VS": orders.Normal,
	"L": orders.Abnormal, "H": orders.Abnormal, "A": orders.Abnormal, "<": orders.Abnormal, ">": orders.Abnormal,
	"LU": orders.Abnormal, "HU": orders.Abnormal, "LX": orders.Abnormal, "HX": orders.Abnormal, "TOX": orders.Abnormal,
	"POS": orders.Abnormal, "DET": orders.Abnormal, "IND": orders.Abnormal, "RR": orders.Abnormal, "WR": orders.Abnormal,
	"R": orders.Abnormal, "I": orders.Abnormal, "NS": orders.Abnormal, "SDD": orders.Abnormal,
	"LL": orders.Critical, "HH": orders.Critical, "AA": orders.Critical,
}

// interpret maps the laboratory's flags: the worst of them counts. Without a flag,
// the range decides, where it can.
func (r *reader) interpret(l *orders.LabResult, f er7.Part) {
	var own []string
	worst := []orders.LabResult{}
	for _, p := range f.Repetitions() {
		flag := p.Text()
		if flag == "" {
			continue
		}
		own = append(own, flag)
		mapped, ok := r.opts.Flags[flag]
		if !ok {
			if mapped, ok = flags[strings.ToUpper(flag)]; !ok {
				mapped = orders.UnknownInterpretation
			}
		}
		worst = append(worst, orders.LabResult{Interpretation: mapped})
	}
	l.SourceInterpretation = strings.Join(own, ",")
	l.Interpretation = orders.Worst(worst)
	if len(own) > 0 {
		return
	}
	above, below := l.IsAboveMaxRange, l.IsBelowMinRange
	switch {
	case above != nil && *above, below != nil && *below:
		l.Interpretation = orders.Abnormal
	case above != nil && below != nil,
		above != nil && l.MinRangeValue == nil, below != nil && l.MaxRangeValue == nil:
		l.Interpretation = orders.Normal
	}
}
