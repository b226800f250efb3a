package vector

import (
	"math"

	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/series"
	"github.com/healthlab-dev/healthlab/healthdata/tables"
)

// Range is a range of glucose in mmol/L, both ends included.
type Range struct{ Low, High float64 }

func (r Range) contains(x float64) bool { return x >= r.Low && x <= r.High }

// Bands of glucose in mmol/L. The lower limit is that of the consensus in mg/dL and the upper limit that in
// mmol/L. So a value in whole mg/dL and a value in tenths of a mmol/L are both in the band that the consensus
// names. Lower limits are reduced by the rounding error of a conversion.
var (
	VeryLow        = Range{math.Inf(-1), below(54)}
	Low            = Range{from(54), below(70)}
	InRange        = Range{from(70), 10}
	High           = Range{above(10), 13.9}
	VeryHigh       = Range{above(13.9), math.Inf(1)}
	BelowRange     = Range{math.Inf(-1), below(70)}
	AboveRange     = Range{above(10), math.Inf(1)}
	TightRange     = Range{from(70), 7.8}
	PregnancyRange = Range{from(63), 7.8}
)

func from(mgdL float64) float64  { return mgdL/healthdata.GlucoseMilligrams - 1e-9 }
func below(mgdL float64) float64 { return math.Nextafter(from(mgdL), math.Inf(-1)) }
func above(mmol float64) float64 { return math.Nextafter(mmol, math.Inf(1)) }

// GMI estimates the glucose management indicator in percent from the mean of glucose.
type GMI struct{ FloatSum }

// Merge implements [Acc].
func (a *GMI) Merge(o Acc) { a.FloatSum.Merge(&o.(*GMI).FloatSum) }

// Result implements [Acc].
func (a *GMI) Result() (tables.Cell, error) {
	mean := FloatSum{sum: a.sum, n: a.n, Mean: true}
	v, err := mean.Result()
	if v.Valid {
		v.Float = 3.31 + 0.02392*v.Float*healthdata.GlucoseMilligrams
	}
	return v, err
}

// Shares adds up the weights of the ranges that values are in, and divides by the number of values.
type Shares struct {
	Ranges []Range
	// Weights has for each range the percentage that a value inside it adds.
	Weights []float64
	Most    float64 // upper limit of the result

	in []int
	n  int
}

// Add implements [Acc].
func (a *Shares) Add(v *Vec, _ *Batch, i, j int) {
	if a.in == nil {
		a.in = make([]int, len(a.Ranges))
	}
	for ; i < j; i++ {
		if v.IsNull(i) {
			continue
		}
		a.n++
		for k, r := range a.Ranges {
			if r.contains(v.Floats[i]) {
				a.in[k]++
			}
		}
	}
}

// Merge implements [Acc].
func (a *Shares) Merge(o Acc) {
	b := o.(*Shares)
	a.n += b.n
	if a.in == nil {
		a.in = b.in
		return
	}
	for k, n := range b.in {
		a.in[k] += n
	}
}

// Result implements [Acc].
func (a *Shares) Result() (tables.Cell, error) {
	if a.n == 0 {
		return tables.Cell{}, nil
	}
	sum := 0.0
	for k, n := range a.in {
		sum += a.Weights[k] * float64(n)
	}
	return FloatCell(min(sum/float64(a.n), a.Most)), nil
}

// RiskIndex is the mean risk of glucose values: the index of high values (HBGI) if High is true, else that of low
// values (LBGI).
type RiskIndex struct {
	High bool

	sum series.Sum
	n   int
}

// riskless is the logarithm of the glucose in mg/dL at which the risk is zero.
var riskless = math.Pow(5.381, 1/1.084)

// Add implements [Acc].
func (a *RiskIndex) Add(v *Vec, _ *Batch, i, j int) {
	var sum, rest float64 // of these rows, and the rounding errors of the additions
	for ; i < j; i++ {
		if v.IsNull(i) {
			continue
		}
		log := math.Log(v.Floats[i] * healthdata.GlucoseMilligrams)
		if !(log > 0) {
			continue // the formula has no value there
		}
		a.n++
		if a.High == (log > riskless) {
			// log to the power 1.084, in half the time of math.Pow.
			f := 1.509 * (math.Exp(1.084*math.Log(log)) - 5.381)
			x := 10 * f * f
			t := sum + x
			z := t - sum
			rest += (sum - (t - z)) + (x - z)
			sum = t
		}
	}
	a.sum = a.sum.Plus(series.Sum{Hi: sum}).Plus(series.Sum{Hi: rest})
}

// Merge implements [Acc].
func (a *RiskIndex) Merge(o Acc) {
	b := o.(*RiskIndex)
	a.sum, a.n = a.sum.Plus(b.sum), a.n+b.n
}

// Result implements [Acc].
func (a *RiskIndex) Result() (tables.Cell, error) {
	if a.n == 0 {
		return tables.Cell{}, nil
	}
	return FloatCell(a.sum.Float64() / float64(a.n)), nil
}
