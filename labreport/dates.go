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
// told apart or the date is invalid. order decides for dates such as 01/02/2026. Three numbers of two digits with
// hyphens, of which the first may be the year, cannot be told apart. sure is false if iso is not
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
		_, yearFirst := ymd("20"+m[1], m[3], m[5]) // 26-02-01
		day, month := m[1], m[3]
		switch {
		case a > 12 && b > 12, len(m[5]) == 2 && m[2] == "-" && yearFirst:
			return m[0], m[0], false
		case a > 12:
		case b > 12, order == monthFirst:
			day, month = m[3], m[1]
		case order == dayFirst, a == b:
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

// birthDate is findDate for a birth date. earliest is the earliest date of the report as YYYY-MM-DD; empty if unknown.
// The date is as printed and not sure if it is after earliest, or if its year has two digits and both centuries give
// an age of at most 110 years.
func birthDate(s string, order dayOrder, earliest string) (iso, printed string, sure bool) {
	iso, printed, sure = findDate(s, order)
	if !sure {
		return iso, printed, false
	}
	if earliest == "" {
		earliest = latestShortYear + "-12-31"
	}
	oldest, _ := strconv.Atoi(earliest[:4])
	oldest -= 110
	var possible []string
	for _, century := range []string{"19", "20"} {
		d := century + iso[2:]
		if fourDigits := strings.Contains(printed, iso[:4]); d <= earliest && (d == iso || !fourDigits && d[:4] >= strconv.Itoa(oldest)) {
			possible = append(possible, d)
		}
	}
	if len(possible) != 1 {
		return printed, printed, false
	}
	return possible[0], printed, true
}

// latestShortYear is the latest year that two digits stand for.
const latestShortYear = "2035"

// year completes a year of two digits: 26 is 2026, 47 is 1947.
func year(s string) string {
	if len(s) != 2 {
		return s
	}
	if s > latestShortYear[2:] {
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

// orderOf returns whether the dates in texts have the day or the month first: as the dates with a number above 12,
// otherwise as usual in the language. It returns noOrder if the dates contradict each other.
func orderOf(texts []string, language string) dayOrder {
	day, month := false, false
	for _, t := range texts {
		for _, m := range reDMY.FindAllStringSubmatchIndex(t, 8) {
			if reMoreDigits.MatchString(t[m[1]:]) || t[m[4]:m[5]] != t[m[8]:m[9]] {
				continue // a telephone number
			}
			a, _ := strconv.Atoi(t[m[2]:m[3]])
			b, _ := strconv.Atoi(t[m[6]:m[7]])
			day = day || a > 12 && a <= 31 && b <= 12 && (t[m[4]:m[5]] != "-" || m[11]-m[10] == 4) // 26-02-01
			month = month || b > 12 && b <= 31 && a <= 12
		}
	}
	switch {
	case day && month:
		return noOrder
	case month:
		return monthFirst
	case day, language == "de", language == "es", language == "fr":
		return dayFirst
	}
	return noOrder
}

// reMoreDigits matches what continues a group of numbers.
var reMoreDigits = regexp.MustCompile(`^[-./]\d`)
