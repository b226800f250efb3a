package refrange_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/labreport/refrange"
)

func ExampleChoose() {
	groups, _ := refrange.Groups("Male: 13.5-17.5; Female: 12.0-15.5; Children (1-17 years): 11.0-14.5", "13.1")
	g, ok := refrange.Choose(groups, refrange.Person{
		Sex: refrange.Female, Born: healthlab.Date{Year: 1990, Month: 5, Day: 1}, On: healthlab.Date{Year: 2026, Month: 3, Day: 1},
	})
	fmt.Println(g.Name, g.Range.Low, g.Range.High, ok)
	// Output: Female 12.0 15.5 true
}

func born(age int) healthlab.Date { return healthlab.Date{Year: 2026 - age, Month: 1, Day: 15} }

var day = healthlab.Date{Year: 2026, Month: 3, Day: 1}

// applied is the group and the range of a person, as text.
func applied(text string, p refrange.Person) string {
	groups, ok := refrange.Groups(text, "1.5")
	if !ok {
		return "not read"
	}
	p.On = day
	g, ok := refrange.Choose(groups, p)
	if !ok {
		return "none"
	}
	return fmt.Sprintf("%s: %s..%s", g.Name, g.Range.Low, g.Range.High)
}

func TestGroups_rangeIsChosenBySexAgeAndPregnancy(t *testing.T) {
	woman, man := refrange.Person{Sex: refrange.Female, Born: born(30)}, refrange.Person{Sex: refrange.Male, Born: born(30)}
	girl, old, nobody := refrange.Person{Sex: refrange.Female, Born: born(9)}, refrange.Person{Sex: refrange.Male, Born: born(70)}, refrange.Person{}
	pregnant, not := woman, woman
	pregnant.Pregnant, not.Pregnant = new(true), new(false)
	fasting, fed := man, man
	fasting.Fasting, fed.Fasting = new(true), new(false)
	baby := refrange.Person{Born: healthlab.Date{Year: 2026, Month: 1, Day: 1}}
	for _, r := range []struct {
		text   string
		person refrange.Person
		want   string
	}{
		{"M: 13-17\nF: 12-15", woman, "F: 12..15"},
		{"M: 13-17\nF: 12-15", man, "M: 13..17"},
		{"M: 13-17\nF: 12-15", nobody, "none"},
		{"Male 13.5 - 17.5 g/dL Female 12.0 - 15.5 g/dL", woman, "Female: 12.0..15.5"},
		{"Men: <7, Women: <5", man, "Men: ..7"},
		{"Männer: 13,5-17,5 / Frauen: 12,0-15,5", woman, "Frauen: 12.0..15.5"},
		{"Hombres: 13 a 17; Mujeres: 12 a 15", man, "Hombres: 13..17"},
		{"Hommes: 13-17 | Femmes: 12-15", woman, "Femmes: 12..15"},
		{"Adults: 3.5-5.1; Children: 3.4-4.7", girl, "Children: 3.4..4.7"},
		{"Adults (>= 18 years): 3.5-5.1, children 3.4-4.7", woman, "Adults (>= 18 years): 3.5..5.1"},
		{"0-6 months: 10-20; 7-11 months: 12-22; 1-17 years: 11-16; 18-64 years: 13-17; 65+ years: 12-16", baby, "0-6 months: 10..20"},
		{"0-6 months: 10-20; 7-11 months: 12-22; 1-17 years: 11-16; 18-64 years: 13-17; 65+ years: 12-16", girl, "1-17 years: 11..16"},
		{"0-6 months: 10-20; 7-11 months: 12-22; 1-17 years: 11-16; 18-64 years: 13-17; 65+ years: 12-16", old, "65+ years: 12..16"},
		{"18-64 years: 13-17; 65 years and older: 12-16", old, "65 years and older: 12..16"},
		{"Male 18-60 years: 13-17; Male >60 years: 12-16; Female: 11-15", man, "Male 18-60 years: 13..17"},
		{"Male 18-60 years: 13-17; Male >60 years: 12-16; Female: 11-15", old, "Male >60 years: 12..16"},
		{"Male <18: 1-2; Male: 3-4", man, "none"}, // 18 of what
		{"Fasting: 70-99; Random: 70-140", fasting, "Fasting: 70..99"},
		{"Fasting: 70-99; Non-fasting: 70-140", fed, "Non-fasting: 70..140"},
		{"Fasting: 70-99; Random: 70-140", man, "none"},
		{"Male: 13-17; Female: 12-15; Pregnant: 11-14", man, "Male: 13..17"},
		{"Male: 13-17; Female: 12-15; Pregnant: 11-14", pregnant, "Pregnant: 11..14"},
		{"Male: 13-17; Female: 12-15; Pregnant: 11-14", not, "Female: 12..15"},
		{"Male: 13-17; Female: 12-15; Pregnant: 11-14", woman, "none"},
		{"Female: Follicular phase 1-9; Luteal phase 2-20; Male: 1-8", man, "Male: 1..8"},
		{"Female: Follicular phase 1-9; Luteal phase 2-20; Male: 1-8", woman, "none"},
		{"Pregnant, 1st trimester: 0.1-2.5; Female: 0.4-4.5", pregnant, "not read"},
		{"Adults: 3-5; Female: 2-4", woman, "none"},
		{"Male: 13-17; Female: see note", woman, "not read"},
		{"Male: 13-17 (fasting); Female: 12-15", woman, "not read"},
		{"Male/Female: 3-5", woman, "none"},
		{"3.5-5.1", woman, "not read"},
		{"Male: 17-13; Female: 12-15", woman, "not read"},
		{"Male: 3,500-5,000; Female: 3,000-4,500", woman, "not read"}, // the result has a point
		{strings.Repeat("Male: 1-2; ", 100), man, "not read"},
	} {
		require.Equal(t, r.want, applied(r.text, r.person), "%s", r.text)
	}
}

// Every age has the group that a table of completed years gives it.
func TestGroups_everyAgeHasTheGroupOfItsCompletedYears(t *testing.T) {
	const text = "< 1 year: 1-2; 1-17 years: 3-4; 18-59 years: 5-6; >= 60 years: 7-8"
	for days := range 40_000 {
		birth := day.AddDays(-days)
		years := day.Year - birth.Year
		if birth.Month > day.Month || birth.Month == day.Month && birth.Day > day.Day {
			years--
		}
		want := "< 1 year: 1..2"
		switch {
		case years >= 60:
			want = ">= 60 years: 7..8"
		case years >= 18:
			want = "18-59 years: 5..6"
		case years >= 1:
			want = "1-17 years: 3..4"
		}
		require.Equal(t, want, applied(text, refrange.Person{Born: birth}), "%d days", days)
	}
	require.Equal(t, "none", applied(text, refrange.Person{Born: day.AddDays(1)}))
}

// A person that a list does not decide has no group, whatever else is known.
func FuzzGroups(f *testing.F) {
	f.Add("M: 13-17\nF: 12-15", "14.1")
	f.Add("Male 18-60 years: 13,5-17; Adults (>= 18 years) <5", "1")
	f.Fuzz(func(t *testing.T, text, result string) {
		groups, ok := refrange.Groups(text, result)
		require.Equal(t, ok, len(groups) > 0)
		for _, g := range groups {
			require.NotEmpty(t, g.Name)
			require.True(t, g.Range.Any())
		}
		refrange.Choose(groups, refrange.Person{Sex: refrange.Male, Born: born(30), On: day, Fasting: new(true)})
	})
}
