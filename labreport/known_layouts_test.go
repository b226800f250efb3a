package labreport_test

import "strings"

// layouts are the ways to set a report that rules were tuned on.
var layouts = map[string]func(m *maker){
	"six columns": func(m *maker) {
		m.front(0)
		m.tabular(m.results(24), []int{0, 1, 2, 3, 4, 8}, []float64{58, 230, 290, 330, 430, 545}, false, plainField)
	},
	"value right, no flag": func(m *maker) {
		m.front(1)
		m.tabular(m.results(20), []int{0, 1, 3, 4}, []float64{58, 260, 340, 440}, true, plainField)
	},
	"flag first": func(m *maker) {
		m.front(0)
		rows := m.results(18)
		m.tabular(rows, []int{2, 0, 1, 3, 4}, []float64{50, 100, 300, 370, 460}, false, plainField)
	},
	"reference before result": func(m *maker) {
		m.front(1)
		m.tabular(m.results(18), []int{0, 4, 3, 1, 2}, []float64{58, 230, 340, 450, 530}, false, plainField)
	},
	"previous right": func(m *maker) {
		m.front(0)
		m.tabular(m.results(18), []int{0, 1, 2, 3, 4, 5}, []float64{58, 220, 275, 320, 420, 540}, false, plainField)
	},
	"previous left": func(m *maker) {
		m.front(1)
		m.tabular(m.results(18), []int{0, 5, 1, 3, 4}, []float64{58, 220, 300, 370, 470}, false, plainField)
	},
	"low and high": func(m *maker) {
		m.front(2)
		m.tabular(m.results(20), []int{0, 1, 3, 6, 7, 2}, []float64{58, 250, 310, 410, 470, 540}, false, plainField)
	},
	"glued flags": func(m *maker) {
		m.front(0)
		m.tabular(m.results(20), []int{0, 1, 3, 4}, []float64{58, 260, 340, 450}, false, func(c cell, col int) string {
			if col == 1 && c.flag != "" {
				return c.value + " " + c.flag
			}
			return plainField(c, col)
		})
	},
	"units with values": func(m *maker) {
		m.front(1)
		m.tabular(m.results(18), []int{0, 1, 4, 2}, []float64{58, 230, 370, 540}, false, func(c cell, col int) string {
			switch {
			case col == 1:
				return c.value + " " + c.unit
			case col == 4:
				return c.ref + " " + c.unit
			}
			return plainField(c, col)
		})
	},
	"in and out of range": func(m *maker) {
		m.lang, m.comma = "en", false
		m.front(0)
		rows := m.results(20)
		m.w.at(58, "Test Name")
		m.w.at(230, "In Range")
		m.w.at(300, "Out Of Range")
		m.w.at(400, "Reference Range")
		m.w.at(550, "Lab")
		m.w.down(1.2)
		for _, c := range rows {
			m.w.at(58, c.name)
			if c.flag == "" {
				m.w.at(230, c.value)
			} else {
				m.w.at(300, c.value+" "+c.flag)
			}
			m.w.at(400, c.ref+" "+c.unit)
			m.w.at(550, "EN")
			m.w.down(1)
		}
	},
	"inline": func(m *maker) {
		m.front(1)
		for _, c := range m.results(18) {
			ref := m.pick("(ref. "+c.ref+")", "(ref: "+c.ref+")", "["+c.ref+"]", "("+c.ref+")")
			m.w.at(60, strings.Join(strings.Fields(m.pick("• ", "", "- ")+c.name+": "+c.value+" "+c.unit+" "+ref+" "+c.flag), " "))
			m.w.down(1)
		}
	},
	"leaders": func(m *maker) {
		m.front(0)
		for _, c := range m.results(16) {
			x := m.w.at(58, c.name)
			n := max(4, int((260-x)/(m.w.wide("."))))
			m.w.at(x, strings.Repeat(".", n))
			m.w.at(275, c.value)
			m.w.at(330, c.unit)
			m.w.at(430, "("+c.ref+")")
			m.w.at(540, c.flag)
			m.w.down(1)
		}
	},
	"one run": func(m *maker) {
		m.front(0)
		m.w.mono = true
		for _, c := range m.results(16) {
			m.w.at(40, strings.Join(strings.Fields(c.name+" "+c.value+" "+c.flag+" "+c.unit+" "+c.ref), " "))
			m.w.down(1)
		}
	},
	"no heading": func(m *maker) {
		m.front(0)
		for _, c := range m.results(18) {
			m.w.at(58, c.name)
			m.w.right(290, c.value)
			m.w.at(310, c.unit)
			m.w.at(400, c.ref)
			m.w.at(500, c.flag)
			m.w.down(1)
		}
	},
	"tiles": func(m *maker) {
		m.front(0)
		rows := m.results(15)
		for i := 0; i < len(rows); i += 3 {
			k := min(3, len(rows)-i)
			for j := range k {
				m.w.at(50+180*float64(j), rows[i+j].name)
			}
			m.w.down(1)
			for j := range k {
				m.w.at(50+180*float64(j), rows[i+j].value+" "+rows[i+j].unit)
			}
			m.w.down(1)
			for j := range k {
				m.w.at(50+180*float64(j), rows[i+j].ref)
			}
			m.w.down(2.2)
		}
	},
	"two columns": func(m *maker) {
		m.front(0)
		rows := m.results(28)
		half := (len(rows) + 1) / 2
		y := m.w.y
		for k, part := range [][]cell{rows[:half], rows[half:]} {
			m.w.y = y
			x := 40 + 290*float64(k)
			for _, c := range part {
				m.w.at(x, c.name)
				m.w.at(x+125, c.value+" "+c.flag)
				m.w.at(x+165, c.unit)
				m.w.at(x+222, strings.ReplaceAll(c.ref, " ", ""))
				m.w.down(1)
			}
		}
	},
	"wrapped names": func(m *maker) {
		m.front(1)
		h := m.heads()
		for i, x := range map[int]float64{0: 58, 1: 190, 3: 270, 4: 370} {
			m.w.at(x, h[i])
		}
		m.w.down(1.6)
		for _, c := range m.results(14) {
			words := strings.Fields(c.name)
			if len(words) > 1 {
				half := (len(words) + 1) / 2
				m.w.put(58, m.w.y-m.w.size*0.6, strings.Join(words[:half], " "))
				m.w.put(58, m.w.y+m.w.size*0.6, strings.Join(words[half:], " "))
			} else {
				m.w.at(58, c.name)
			}
			m.w.at(190, c.value)
			m.w.at(270, c.unit)
			m.w.at(370, c.ref)
			m.w.down(2)
		}
	},
	"sentences": func(m *maker) {
		m.front(0)
		rows := m.results(12)
		for i := 0; i < len(rows); i += 2 {
			s := ""
			for _, c := range rows[i:min(i+2, len(rows))] {
				s += strings.Join(strings.Fields(c.name+" "+c.value+" "+c.unit+" ("+c.ref+") "+c.flag), " ") + "; "
			}
			m.w.at(40, strings.TrimSpace(s))
			m.w.down(1.1)
		}
	},
	"three pages": func(m *maker) {
		m.w.size = 13
		m.front(0)
		m.tabular(m.results(44), []int{0, 1, 2, 3, 4}, []float64{58, 240, 300, 350, 460}, false, plainField)
	},
	"comments between": func(m *maker) {
		m.front(0)
		rows := m.results(14)
		for i, c := range rows {
			m.w.at(58, c.name)
			m.w.at(240, c.value)
			m.w.at(290, c.flag)
			m.w.at(330, c.ref)
			m.w.at(450, c.unit)
			m.w.down(1)
			if i%4 == 2 && m.lang == "en" {
				m.w.at(70, "Values between 140 and 199 mg/dL suggest that the patient should be tested again within 3 months.")
				m.w.down(1)
				m.w.at(70, "Method: Enzymatic. See reference 12 for the interpretation of results below 40 mg/dL.")
				m.w.down(1)
			}
		}
	},
	"units in names": func(m *maker) {
		m.front(1)
		h := m.heads()
		for i, x := range map[int]float64{0: 58, 1: 300, 4: 400} {
			m.w.at(x, h[i])
		}
		m.w.down(1.3)
		for _, c := range m.results(14) {
			name := c.name
			if c.unit != "" {
				name += " (" + c.unit + ")"
			}
			m.w.at(58, name)
			m.w.at(300, c.value)
			m.w.at(400, c.ref)
			m.w.down(1)
		}
	},
	"dated columns": func(m *maker) {
		m.front(0)
		h := m.heads()
		m.w.at(58, h[0])
		m.w.at(220, "14/05/2025")
		m.w.at(290, "02/11/2024")
		m.w.at(370, h[3])
		m.w.at(460, h[4])
		m.w.down(1.3)
		for _, c := range m.results(14) {
			m.w.at(58, c.name)
			m.w.at(222, c.value)
			m.w.at(292, c.prev)
			m.w.at(370, c.unit)
			m.w.at(460, c.ref)
			m.w.down(1)
		}
	},
	"name value pairs in blocks": func(m *maker) {
		m.front(1)
		label := map[string][]string{"en": {"Result:", "Reference:"}, "de": {"Ergebnis:", "Referenz:"}, "es": {"Resultado:", "Referencia:"}, "fr": {"Résultat:", "Référence:"}}[m.lang]
		for _, c := range m.results(9) {
			m.w.at(50, c.name)
			m.w.down(1)
			m.w.at(70, strings.TrimSpace(label[0]+" "+c.value+" "+c.unit+" "+c.flag))
			m.w.down(1)
			m.w.at(70, label[1]+" "+c.ref)
			m.w.down(1.8)
		}
	},
	"two column cards": func(m *maker) {
		m.front(0)
		rows := m.results(20)
		for i := 0; i+1 < len(rows); i += 2 {
			for j := range 2 {
				c := rows[i+j]
				x := 45 + 285*float64(j)
				m.w.at(x, c.name)
				m.w.right(x+230, strings.TrimSpace(c.value+" "+c.unit))
			}
			m.w.down(1)
			for j := range 2 {
				m.w.at(45+285*float64(j), "("+rows[i+j].ref+")")
			}
			m.w.down(1.7)
		}
		if len(rows)%2 == 1 {
			m.out.rows = m.out.rows[:len(rows)-1]
		}
	},
	"words": func(m *maker) {
		m.lang = "en"
		m.front(0)
		m.w.at(58, "Assay")
		m.w.at(280, "Result")
		m.w.at(420, "Expected")
		m.w.down(1.3)
		m.qualitative(func(name, value, expected, flag string) {
			m.w.at(58, name)
			m.w.at(280, strings.TrimSpace(value+" "+flag))
			m.w.at(420, expected)
			m.w.down(1)
		})
	},
}
