package healthdata

import "github.com/healthlab-dev/healthlab"

// assumedAge is used where the age of a person is not known.
const assumedAge = 30

// MaxHeartRate returns 220 minus the age in full years at the start of a workout (Fox,
// Naughton and Haskell, 1971), and assumes an age of 30 where the birth date is not
// known. The day of the workout is taken in at's own location.
func MaxHeartRate(birth *healthlab.Date, at healthlab.Time) int {
	age := assumedAge
	if birth != nil {
		age = AgeOn(*birth, healthlab.DateOf(at.Time))
	}
	return 220 - age
}

// MaxHeartRate is the function of that name for a workout of this user. What the
// workout's source says goes first: the age, then the birth date; nil where it says
// nothing. Then comes the fallback birth date.
func (u *User) MaxHeartRate(age *int, birth *healthlab.Date, at healthlab.Time) int {
	if age != nil {
		return 220 - *age
	}
	if birth == nil && u.FallbackBirthDate != nil {
		birth = &u.FallbackBirthDate.Value
	}
	return MaxHeartRate(birth, at)
}

// AgeOn returns the age in full years on a day. Who was born on 29 February is a year
// older on 1 March of a year without that day. Before birth the age is 0.
func AgeOn(birth, day healthlab.Date) int {
	age := day.Year - birth.Year
	if day.Month < birth.Month || day.Month == birth.Month && day.Day < birth.Day {
		age--
	}
	return max(age, 0)
}

// HeartRateZones returns for how many seconds each of the six zones of [Workout] held,
// given heart rates in beats per minute and how long each of them lasted. A rate on the
// border of two zones belongs to the higher one.
func HeartRateZones(bpm []float64, seconds []float64, maximum int) []int64 {
	var zones [6]float64
	for i, v := range bpm {
		z := 0
		// In tenths of the maximum, so that a border is an exact number.
		for z < 5 && v*10 >= float64(maximum*(5+z)) {
			z++
		}
		zones[z] += seconds[i]
	}
	out := make([]int64, len(zones))
	for i, s := range zones {
		out[i] = int64(s + 0.5)
	}
	return out
}
