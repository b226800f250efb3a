package aggregate

import "github.com/healthlab-dev/healthlab/aggregate/internal/vector"

// Band is a glucose range of the international consensus on time in range. The consensus prints the limits in whole
// mg/dL and in tenths of a mmol/L. In this package the lower limit of a band is the printed one in mg/dL (70 mg/dL is
// 3.885 mmol/L), and the upper limit is the printed one in mmol/L (10.0 mmol/L is 180.2 mg/dL). So a value in either
// unit is in the band that the consensus prints for it. Each value is in exactly one of the first five bands.
//
// Sources: Battelino et al., Diabetes Care 2019;42:1593-1603; for TightRange Battelino et al., Lancet Diabetes
// Endocrinol 2023;11:42-57.
type Band string

// Bands of glucose.
const (
	VeryLow        Band = "very_low"        // below 3.0 mmol/L, 54 mg/dL
	Low            Band = "low"             // 3.0 to 3.8 mmol/L, 54 to 69 mg/dL
	InTarget       Band = "in_range"        // 3.9 to 10.0 mmol/L, 70 to 180 mg/dL
	High           Band = "high"            // 10.1 to 13.9 mmol/L, 181 to 250 mg/dL
	VeryHigh       Band = "very_high"       // above 13.9 mmol/L, 250 mg/dL
	BelowRange     Band = "below_range"     // very_low and low
	AboveRange     Band = "above_range"     // high and very_high
	TightRange     Band = "tight_range"     // 3.9 to 7.8 mmol/L, 70 to 140 mg/dL
	PregnancyRange Band = "pregnancy_range" // 3.5 to 7.8 mmol/L, 63 to 140 mg/dL
)

// consensusBands are the bands with the limits that the consensus prints, in the order of the constants above.
var consensusBands = []BandSchema{
	{Name: VeryLow, High: new(53), HighMmol: new(2.9)},
	{Name: Low, Low: new(54), High: new(69), LowMmol: new(3.0), HighMmol: new(3.8)},
	{Name: InTarget, Low: new(70), High: new(180), LowMmol: new(3.9), HighMmol: new(10.0)},
	{Name: High, Low: new(181), High: new(250), LowMmol: new(10.1), HighMmol: new(13.9)},
	{Name: VeryHigh, Low: new(251), LowMmol: new(14.0)},
	{Name: BelowRange, High: new(69), HighMmol: new(3.8)},
	{Name: AboveRange, Low: new(181), LowMmol: new(10.1)},
	{Name: TightRange, Low: new(70), High: new(140), LowMmol: new(3.9), HighMmol: new(7.8)},
	{Name: PregnancyRange, Low: new(63), High: new(140), LowMmol: new(3.5), HighMmol: new(7.8)},
}

var bandRanges = map[Band]vector.Range{
	VeryLow: vector.VeryLow, Low: vector.Low, InTarget: vector.InRange, High: vector.High, VeryHigh: vector.VeryHigh,
	BelowRange: vector.BelowRange, AboveRange: vector.AboveRange, TightRange: vector.TightRange, PregnancyRange: vector.PregnancyRange,
}

// bands returns the bands that a function accepts; none for a function without a band.
func (f Func) bands() []string {
	episodes := []string{string(VeryLow), string(BelowRange), string(AboveRange), string(VeryHigh)}
	switch f {
	case Episodes:
		return episodes
	case TimeInRange:
		return append(episodes, string(Low), string(InTarget), string(High), string(TightRange), string(PregnancyRange))
	}
	return nil
}

// In applies the function to a band of the glucose of a user: TimeInRange.In(InTarget).
func (f Func) In(b Band) Aggregate { return Aggregate{Func: f, Arg: Samples("glucose"), Band: b} }
