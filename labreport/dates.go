package labreport

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/healthlab-dev/healthlab/internal/fold"
)

var (
	reYMD    = regexp.MustCompile(`\b((?:19|20)\d{2})[-/.](\d{1,2})[-/.](\d{1,2})\b`)
	reDMY    = regexp.MustCompile(`\b(\d{1,2})(/|-|\.)(\d{1,2})(/|-|\.)((?:19|20)\d{2}|\d{2})\b`)
	reDayMon = regexp.MustCompile(`(?i)\b(\d{1,2})(?:st|nd|rd|th|er|º|\.)?[\s./-]*(?:de\s+)?([a-zà-ÿ]{3,10})\.?,?[\s./-]*(?:de\s+|del\s+)?((?:19|20)\d{2}|\d{2})\b`)
	reMonDay = regexp.MustCompile(`(?i)\b([a-zà-ÿ]{3,10})\.?[\s-]+(\d{1,2})(?:st|nd|rd|th)?,?[\s-]+((?:19|20)\d{2})\b`)
)

var months = func() map[string]time.Month {
	m := map[string]time.Month{}
	for i, list := range []string{
		"jan january januar janner enero ene janvier janv", "feb february februar febrero fevrier fevr fev", "mar march marz mrz maerz marzo mars",
		"apr april abril abr avril avr", "may mai mayo", "jun june juni junio juin", "jul july juli julio juillet juil",
		"aug august agosto ago aout aou", "sep sept september septiembre set setiembre septembre", "oct october oktober okt octubre octobre",
		"nov november noviembre novembre", "dec december dezember dez diciembre dic decembre",
	} {
		for _, w := range strings.Fields(list) {
			m[w] = time.Month(i + 1)
		}
	}
	return m
}()

// dayOrder is whether the day or the month comes first in a date such as 01/02/2026.
type dayOrder uint8

const (
	noOrder dayOrder = iota
	dayFirst
	monthFirst
)

// findDate returns the first date in s. iso is the date as YYYY-MM-DD, or the printed text if day and month cannot be
// told apart or the date is invalid. order decides for dates such as 01/02/2026. sure is false if iso is not
// YYYY-MM-DD; all results are zero without a date.
func findDate(s string, order dayOrder) (iso, printed string, sure bool) {
	if m := reYMD.FindStringSubmatch(s); m != nil {
		if d, ok := ymd(m[1], m[2], m[3]); ok {
			return d, m[0], true
		}
		return m[0], m[0], false
	}
	if m := reDayMon.FindStringSubmatch(s); m != nil {
		if mon, ok := months[fold.String(m[2])]; ok {
			if d, ok := ymd(year(m[3]), strconv.Itoa(int(mon)), m[1]); ok {
				return d, m[0], true
			}
			return m[0], m[0], false
		}
	}
	if m := reMonDay.FindStringSubmatch(s); m != nil {
		if mon, ok := months[fold.String(m[1])]; ok {
			if d, ok := ymd(m[3], strconv.Itoa(int(mon)), m[2]); ok {
				return d, m[0], true
			}
			return m[0], m[0], false
		}
	}
	if m := reDMY.FindStringSubmatch(s); m != nil && m[2] == m[4] {
		a, _ := strconv.Atoi(m[1])
		b, _ := strconv.Atoi(m[3])
		day, month := m[1], m[3]
		switch {
		case a > 12 && b > 12:
			return m[0], m[0], false
		case a > 12:
		case b > 12, order == monthFirst && m[2] != ".":
			day, month = m[3], m[1]
		case m[2] == ".", order == dayFirst, a == b:
		default:
			return m[0], m[0], false
		}
		if d, ok := ymd(year(m[5]), month, day); ok {
			return d, m[0], true
		}
		return m[0], m[0], false
	}
	return "", "", false
}

// year completes a year of two digits: 26 is 2026, 47 is 1947.
func year(s string) string {
	if len(s) != 2 {
		return s
	}
	if s > "35" {
		return "19" + s
	}
	return "20" + s
}

func ymd(y, m, d string) (string, bool) {
	yy, _ := strconv.Atoi(y)
	mm, _ := strconv.Atoi(m)
	dd, _ := strconv.Atoi(d)
	if mm < 1 || mm > 12 || dd < 1 {
		return "", false
	}
	t := time.Date(yy, time.Month(mm), dd, 0, 0, 0, 0, time.UTC)
	if t.Day() != dd {
		return "", false
	}
	return fmt.Sprintf("%04d-%02d-%02d", yy, mm, dd), true
}

// orderOf returns whether the dates in texts have the day or the month first. Dates with a number above 12 decide,
// then the language, then the order in which, in pairs of printed collection and report date, the collection is
// shortly before the report.
func orderOf(texts []string, language string, pairs [][2]string) dayOrder {
	day, month := 0, 0
	for _, t := range texts {
		for _, m := range reDMY.FindAllStringSubmatch(t, 8) {
			a, _ := strconv.Atoi(m[1])
			b, _ := strconv.Atoi(m[3])
			switch {
			case m[2] == "." || m[2] != m[4]:
			case a > 12 && b <= 12:
				day++
			case b > 12 && a <= 12:
				month++
			}
		}
	}
	switch {
	case day > month:
		return dayFirst
	case month > day:
		return monthFirst
	case language == "de", language == "es", language == "fr":
		return dayFirst
	}
	votes := 0
	for _, p := range pairs {
		d, okD := daysBetween(p[0], p[1], dayFirst)
		m, okM := daysBetween(p[0], p[1], monthFirst)
		soon := func(n int, ok bool) bool { return ok && n >= 0 && n <= 14 }
		switch {
		case soon(d, okD) && !soon(m, okM):
			votes++
		case soon(m, okM) && !soon(d, okD):
			votes--
		}
	}
	switch {
	case votes > 0:
		return dayFirst
	case votes < 0:
		return monthFirst
	}
	return noOrder
}

func daysBetween(from, to string, o dayOrder) (int, bool) {
	a, _, _ := findDate(from, o)
	b, _, _ := findDate(to, o)
	x, err1 := time.Parse(time.DateOnly, a)
	y, err2 := time.Parse(time.DateOnly, b)
	if err1 != nil || err2 != nil {
		return 0, false
	}
	return int(y.Sub(x).Hours() / 24), true
}
