package labreport

import (
	"regexp"
	"slices"
	"strings"

	"github.com/healthlab-dev/healthlab/internal/fold"
)

var (
	reLabWord = regexp.MustCompile(`(?i)\b(?:lab|labs|laborator(?:y|ies|io|ios|ium)|laboratoires?|labor|labore|diagnosti\w*|patholog\w*|clinic\w*|klinik\w*|clínic\w*|hospital\w*|hôpital|krankenhaus|medical cent\w+|health|institut\w*|medizin\w*|biolog\w*|mvz|praxis|centro|centre|analíticas?|análisis|\w*labor|\w+lab|\w+labs)\b`)
	reDash    = regexp.MustCompile(`\s+[-|:•·]+\s+|\s{3,}|\s*[|•]\s*`)
)

// labName returns the name of the laboratory: the text at the top of the first page, or the text of a label for
// laboratories (labelled), that looks most like one. Words such as laboratory and large letters count. isRow reports
// whether line i is a result, which ends the top. It returns false if no text is likely.
func labName(lines []line, labelled []found, isRow func(int) bool) (found, bool) {
	var heights []float64
	for _, l := range lines {
		heights = append(heights, l.height)
	}
	slices.Sort(heights)
	typical := 1.0
	if len(heights) > 0 {
		typical = heights[len(heights)/2]
	}
	var best found
	bestScore := 0.0
	top := 0
	for i := range lines {
		l := &lines[i]
		if l.page != 0 || isRow(i) {
			break
		}
		if top++; top > 12 {
			break
		}
		for k, cell := range l.cells() {
			text := strings.TrimSpace(textOf(cell))
			for _, part := range reDash.Split(text, -1) {
				part = strings.Trim(part, " .,;:|")
				score := labScore(part)
				if score <= 0 {
					continue
				}
				score += 1.2 * min(1.5, (l.height/typical-1)*3)
				score -= 0.12*float64(top-1) + 0.2*float64(k)
				if score > bestScore {
					bestScore = score
					best = found{text: part, tokens: cell, page: l.page, conf: confOf(cell), weight: min(1, 0.6+0.15*score)}
				}
			}
		}
	}
	for _, c := range labelled {
		text := strings.Trim(reDash.Split(c.text, 2)[0], " .,;:")
		if s := labScore(text) + 0.8; s > bestScore && len(fold.Words(text)) >= 2 {
			bestScore, best = s, found{text: text, tokens: c.tokens, page: c.page, conf: c.conf, weight: 0.9}
		}
	}
	return best, bestScore > 0.3
}

// labScore returns how much a text looks like the name of a laboratory.
func labScore(s string) float64 {
	words := fold.Words(s)
	if len(words) == 0 || len(words) > 8 || len(s) < 4 {
		return 0
	}
	titles, digits := 0, 0
	for _, w := range words {
		if titleWords[w] {
			titles++
		}
		if strings.IndexFunc(w, fold.IsDigit) >= 0 {
			digits++
		}
	}
	if titles == len(words) || digits*2 > len(words) || strings.Contains(s, ":") || strings.Contains(s, "@") || strings.Contains(s, "www") {
		return 0
	}
	if f, ok := labelWords[words[0]]; ok && f != fLab || len(words) > 1 && labelWords[words[0]+" "+words[1]] != noField {
		return 0
	}
	score := 0.6
	if reLabWord.MatchString(s) {
		score += 1.5
	}
	if _, printed, _ := findDate(s, dayFirst); printed != "" {
		return 0
	}
	if titles > 0 && !reLabWord.MatchString(s) {
		score -= 0.3
	}
	return score
}
