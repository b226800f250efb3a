package sandbox

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
	"math/rand/v2"

	"github.com/healthlab-dev/healthlab"
)

// Sports of sandbox people.
const (
	running  = "running"
	cycling  = "cycling"
	swimming = "swimming"
	walk     = "walking"
	strength = "strength_training" // without a distance
)

// person holds the properties of an invented person that do not change from day to day. The same user always gives
// the same person.
type person struct {
	id          [32]byte
	female      bool
	age         int
	heightCM    float64
	weightKG    float64
	fatPercent  float64
	restingBPM  float64
	hrv         float64 // RMSSD, ms
	wakeMinute  float64 // usual wake-up time, in minutes after local midnight
	sleepHours  float64
	stepGoal    float64
	sporty      float64 // probability of a workout on a day
	sport       string
	fasting     float64 // glucose before meals, mmol/L
	diabetic    bool
	coffees     float64
	systolic    float64
	temperature float64
}

func seedOf(user healthlab.UserID, what string, day healthlab.Date) [32]byte {
	b := append([]byte{}, user.UUID[:]...)
	b = append(b, what...)
	b = binary.BigEndian.AppendUint32(b, uint32(day.Year*10000+int(day.Month)*100+day.Day))
	return sha256.Sum256(b)
}

func dice(user healthlab.UserID, what string, day healthlab.Date) *rand.Rand {
	return rand.New(rand.NewChaCha8(seedOf(user, what, day)))
}

// personOf invents the person whom a user id stands for.
func personOf(user healthlab.UserID) person {
	r := dice(user, "person", healthlab.Date{})
	p := person{id: seedOf(user, "person", healthlab.Date{})}
	p.female = r.IntN(2) == 0
	p.age = 20 + r.IntN(50)
	p.heightCM = 178 + 7*r.NormFloat64()
	if p.female {
		p.heightCM -= 13
	}
	bmi := clamp(25+3.5*r.NormFloat64(), 18.5, 38)
	p.weightKG = bmi * p.heightCM * p.heightCM / 1e4
	p.fatPercent = clamp(bmi*1.1-6+0.1*float64(p.age), 8, 45)
	p.sporty = clamp(0.35+0.2*r.NormFloat64(), 0.05, 0.8)
	p.restingBPM = clamp(66-14*p.sporty+4*r.NormFloat64(), 44, 82)
	p.hrv = clamp(70-0.7*float64(p.age)+30*p.sporty+8*r.NormFloat64(), 14, 140)
	p.wakeMinute = clamp(415+40*r.NormFloat64(), 300, 560)
	p.sleepHours = clamp(7.3+0.5*r.NormFloat64(), 5.5, 9)
	p.stepGoal = clamp(7500+2200*r.NormFloat64()+3000*p.sporty, 2500, 16000)
	p.sport = []string{running, running, running, cycling, cycling, swimming}[r.IntN(6)]
	p.diabetic = r.IntN(10) == 0
	p.fasting = clamp(4.9+0.3*r.NormFloat64(), 4.2, 5.6)
	if p.diabetic {
		p.fasting += 2.2
	}
	p.coffees = clamp(2+r.NormFloat64(), 0, 5)
	p.systolic = clamp(118+0.25*float64(p.age-40)+6*r.NormFloat64(), 98, 150)
	p.temperature = 36.5 + 0.15*r.NormFloat64()
	return p
}

func clamp(v, low, high float64) float64 { return math.Max(low, math.Min(high, v)) }

func round(v float64, decimals int) float64 {
	p := math.Pow(10, float64(decimals))
	return math.Round(v*p) / p
}
