package ocr

import (
	"math"
	"strings"

	"github.com/healthlab-dev/healthlab/labreport"
)

// vote merges several readings of one page. Where they agree, the words get a higher confidence than in any single
// reading. Where they differ, the text with the most weight is used, with a lower confidence. Every word of the
// result occurs in some reading.
func vote(readings [][]labreport.Word) []labreport.Word {
	type ref struct{ reading, word int }
	var all []ref
	at := map[ref]int{}
	for i, words := range readings {
		for k := range words {
			at[ref{i, k}] = len(all)
			all = append(all, ref{i, k})
		}
	}
	// Words of different readings that overlap are grouped.
	parent := make([]int, len(all))
	for i := range parent {
		parent[i] = i
	}
	var find func(int) int
	find = func(i int) int {
		if parent[i] != i {
			parent[i] = find(parent[i])
		}
		return parent[i]
	}
	const bands = 200
	byBand := map[int][]ref{}
	band := func(b labreport.Box) int { return int((b.Y + b.Height/2) * bands) }
	for _, r := range all {
		b := band(readings[r.reading][r.word].Box)
		byBand[b] = append(byBand[b], r)
	}
	for _, r := range all {
		box := readings[r.reading][r.word].Box
		for d := -2; d <= 2; d++ {
			for _, o := range byBand[band(box)+d] {
				if o.reading > r.reading && cover(box, readings[o.reading][o.word].Box) {
					parent[find(at[o])] = find(at[r])
				}
			}
		}
	}
	groups := map[int][][]labreport.Word{} // root of the group → words of each reading
	var order []int
	for i, r := range all {
		root := find(i)
		if groups[root] == nil {
			groups[root] = make([][]labreport.Word, len(readings))
			order = append(order, root)
		}
		groups[root][r.reading] = append(groups[root][r.reading], readings[r.reading][r.word])
	}
	var out []labreport.Word
	for _, root := range order {
		out = append(out, bestWords(groups[root])...)
	}
	return out
}

func cover(a, b labreport.Box) bool {
	w := min(a.X+a.Width, b.X+b.Width) - max(a.X, b.X)
	h := min(a.Y+a.Height, b.Y+b.Height) - max(a.Y, b.Y)
	return w > 0.4*min(a.Width, b.Width) && h > 0.45*min(a.Height, b.Height)
}

// bestWords returns the best words for one area of the page, of which group has the words of each reading.
func bestWords(group [][]labreport.Word) []labreport.Word {
	type party struct {
		words  []labreport.Word
		weight float64
		best   float64
		doubt  float64 // probability that all readings with this text are wrong
		voters int
	}
	parties := map[string]*party{}
	var names []string
	silent := 0
	for _, words := range group {
		if len(words) == 0 {
			silent++
			continue
		}
		sortByX(words)
		var text strings.Builder
		conf := 1.0
		for _, w := range words {
			text.WriteString(w.Text)
			conf = min(conf, w.Confidence)
		}
		p := parties[text.String()]
		if p == nil {
			p = &party{doubt: 1}
			parties[text.String()] = p
			names = append(names, text.String())
		}
		p.weight += 0.25 + conf
		p.doubt *= 1 - 0.9*conf
		p.voters++
		// Among readings with the same letters, the one with fewer words is used.
		if p.words == nil || len(words) < len(p.words) || len(words) == len(p.words) && conf > p.best {
			p.words, p.best = words, conf
		}
	}
	var won *party
	wonText, total := "", 0.0
	for _, n := range names {
		p := parties[n]
		total += p.weight
		if won == nil || p.weight > won.weight {
			won, wonText = p, n
		}
	}
	// A reading with a decimal point is preferred to one with the same digits without, because points are often lost
	// and rarely invented.
	if !strings.ContainsAny(wonText, ".,") && strings.ContainsAny(wonText, "0123456789") {
		for _, n := range names {
			if p := parties[n]; p.best >= 0.6 && strings.ContainsAny(n, ".,") && withoutPoints.Replace(n) == wonText {
				won = p
				break
			}
		}
	}
	if won.voters == 1 && silent > 0 && silent >= len(group)-1 && won.best < 0.6 {
		return nil // dirt that a single reading took for print
	}
	conf := 1 - won.doubt
	if won.voters < len(group)-silent {
		conf = min(conf, won.weight/total)
	}
	if silent > 0 {
		conf *= 1 - 0.12*float64(silent)
	}
	out := make([]labreport.Word, len(won.words))
	for i, w := range won.words {
		w.Confidence = math.Max(0.01, math.Min(0.99, conf))
		w.Votes = won.voters
		out[i] = w
	}
	return out
}

var withoutPoints = strings.NewReplacer(".", "", ",", "")

func sortByX(words []labreport.Word) {
	for i := 1; i < len(words); i++ {
		for k := i; k > 0 && words[k].Box.X < words[k-1].Box.X; k-- {
			words[k], words[k-1] = words[k-1], words[k]
		}
	}
}
