package console

import (
	"fmt"
	"net/http"
	"slices"
)

// lifecycle is the lifecycle of a collection method as the API publishes it.
type lifecycle struct {
	Method   string `json:"method"`
	Statuses []struct {
		Status string `json:"status"`
		Stage  string `json:"stage"`
		Final  bool   `json:"final"`
	} `json:"statuses"`
	Transitions []struct {
		From string `json:"from"`
		To   string `json:"to"`
	} `json:"transitions"`
}

func (s *Console) lifecycles(r *http.Request) ([]lifecycle, error) {
	var out struct {
		Lifecycles []lifecycle `json:"lifecycles"`
	}
	err := s.get(r, "/v3/orders/lifecycle", nil, &out)
	return out.Lifecycles, err
}

// diagram is a drawing of a lifecycle with the path of one order, in the units of the SVG.
type diagram struct {
	Height  float64
	Columns []tick
	Nodes   []node
	Arrows  []arrow
	Summary string
}

type node struct {
	X, Y        float64
	Text, Class string
}

type arrow struct{ Path, Class string }

// Measures of a diagram of four columns that is 910 units wide.
const (
	nodeWidth, nodeHeight = 194.0, 30.0
	columnWidth, rowStep  = 228.0, 40.0
	diagramTop            = 34.0
)

// draw returns the diagram of a lifecycle; nil if had is empty. had holds the statuses that an order has had, oldest
// first. The diagram shows the transitions that the order took, and those that are possible from its last status.
func (l *lifecycle) draw(had []string) *diagram {
	if len(had) == 0 {
		return nil
	}
	column := map[string]int{"received": 0, "collecting_sample": 1, "sample_with_lab": 2}
	titles := []string{"received", "collecting sample", "sample with lab", "end"}
	d := &diagram{}
	rows := make([]int, len(titles))
	place := map[string]node{}
	columnOf := map[string]int{}
	last := had[len(had)-1]
	next := map[string]bool{}
	for _, t := range l.Transitions {
		if t.From == last {
			next[t.To] = true
		}
	}
	for _, s := range l.Statuses {
		c, ok := column[s.Stage]
		if !ok {
			c = len(titles) - 1
		}
		n := node{X: float64(c) * columnWidth, Y: diagramTop + float64(rows[c])*rowStep, Text: words(s.Status), Class: "node"}
		switch {
		case s.Status == last:
			n.Class = "node here"
		case slices.Contains(had, s.Status):
			n.Class = "node had"
		}
		rows[c]++
		place[s.Status], columnOf[s.Status] = n, c
		d.Nodes = append(d.Nodes, n)
	}
	for c, title := range titles {
		if rows[c] > 0 {
			d.Columns = append(d.Columns, tick{At: float64(c) * columnWidth, Label: title})
		}
	}
	d.Height = diagramTop + float64(slices.Max(rows))*rowStep
	join := func(from, to, class string) {
		a, okA := place[from]
		b, okB := place[to]
		if okA && okB && from != to {
			d.Arrows = append(d.Arrows, arrow{Path: between(a, b, columnOf[from], columnOf[to]), Class: class})
		}
	}
	for _, s := range l.Statuses {
		if next[s.Status] {
			join(last, s.Status, "next")
		}
	}
	for i := 1; i < len(had); i++ {
		join(had[i-1], had[i], "took")
	}
	d.Summary = fmt.Sprintf("Lifecycle of %s: the order had %d statuses and is %s.", words(l.Method), len(had), words(last))
	return d
}

// between returns the SVG path of an arrow from node a to node b. from and to are the columns of the nodes.
func between(a, b node, from, to int) string {
	y, z := a.Y+nodeHeight/2, b.Y+nodeHeight/2
	right := a.X + nodeWidth
	switch {
	case from == to: // around the right side
		return fmt.Sprintf("M%.0f %.0fC%.0f %.0f %.0f %.0f %.0f %.0f", right, y, right+26, y, right+26, z, right+3, z)
	case from < to:
		middle := (right + b.X) / 2
		return fmt.Sprintf("M%.0f %.0fC%.0f %.0f %.0f %.0f %.0f %.0f", right, y, middle, y, middle, z, b.X-3, z)
	}
	middle := (a.X + b.X + nodeWidth) / 2
	return fmt.Sprintf("M%.0f %.0fC%.0f %.0f %.0f %.0f %.0f %.0f", a.X, y, middle, y, middle, z, b.X+nodeWidth+3, z)
}
