package hl7

import (
	"strings"

	"github.com/healthlab-dev/healthlab/adapters/labs/hl7/er7"
	"github.com/healthlab-dev/healthlab/orders/labresult"
)

// flags maps the abnormal flags of the HL7 standard to interpretations.
var flags = map[string]labresult.Interpretation{
	"N": labresult.Normal, "NEG": labresult.Normal, "ND": labresult.Normal, "NR": labresult.Normal,
	"S": labresult.Normal, "MS": labresult.Normal, "VS": labresult.Normal,
	"L": labresult.Abnormal, "H": labresult.Abnormal, "A": labresult.Abnormal, "<": labresult.Abnormal, ">": labresult.Abnormal,
	"LU": labresult.Abnormal, "HU": labresult.Abnormal, "LX": labresult.Abnormal, "HX": labresult.Abnormal, "TOX": labresult.Abnormal,
	"POS": labresult.Abnormal, "DET": labresult.Abnormal, "IND": labresult.Abnormal, "RR": labresult.Abnormal, "WR": labresult.Abnormal,
	"R": labresult.Abnormal, "I": labresult.Abnormal, "NS": labresult.Abnormal, "SDD": labresult.Abnormal,
	"LL": labresult.Critical, "HH": labresult.Critical, "AA": labresult.Critical,
}

// interpret sets the interpretation of a result from the laboratory's flags f. Of several flags the worst counts.
// Without a flag the interpretation stays empty.
func (r *reader) interpret(l *labresult.Result, f er7.Part) {
	var own []string
	worst := []labresult.Result{}
	for _, p := range f.Repetitions() {
		flag := p.Text()
		if flag == "" {
			continue
		}
		own = append(own, flag)
		mapped, ok := r.opts.Flags[flag]
		if !ok {
			if mapped, ok = flags[strings.ToUpper(flag)]; !ok {
				mapped = labresult.UnknownInterpretation
			}
		}
		worst = append(worst, labresult.Result{Interpretation: mapped})
	}
	l.SourceInterpretation = strings.Join(own, ",")
	if len(own) > 0 {
		l.Interpretation = labresult.Worst(worst)
	}
}
