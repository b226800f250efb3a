package aggregate

import (
	"math"

	"github.com/healthlab-dev/healthlab/aggregate/internal/vector"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/tables"
)

// macroNames are the names of the derived values of a sleep session.
var macroNames = []string{"asleep_at", "awake_at", "awakenings", "chronotype", "sleep_score"}

func macroColumn(name string) column {
	typ := map[string]Type{
		"asleep_at": typeTime, "awake_at": typeTime, "awakenings": typeInt, "chronotype": typeText, "sleep_score": typeInt,
	}[name]
	return column{name: name, base: name, typ: typ, from: fromMacro}
}

// models are the models of derived values that a host may replace.
type models struct {
	score     SleepScore
	readiness Readiness
}

// SleepNight is the input of a [SleepScore]. A nil field is unknown.
type SleepNight struct {
	// Asleep, REM, Deep and Latency are in seconds.
	Asleep, REM, Deep, Latency *int64
	// Efficiency is the percentage of the session in which the person slept.
	Efficiency *float64
}

// SleepScore rates a night from 0 to 100; ok is false if too little is known. Implementations are pure and safe
// for concurrent use.
type SleepScore func(SleepNight) (score int64, ok bool)

// HouseSleepScore is version 1 of this library's model: the time asleep against eight hours (half of the
// score), efficiency from 60 to 95 percent (a quarter), REM and deep sleep against 45 percent of the time
// asleep (15 percent), and a latency from 60 down to 20 minutes (10 percent). Unknown parts are left out. It is
// no medical statement.
func HouseSleepScore(n SleepNight) (int64, bool) {
	if n.Asleep == nil || *n.Asleep == 0 {
		return 0, false
	}
	asleep := float64(*n.Asleep)
	sum, weights := 0.0, 0.0
	part := func(weight, score float64) {
		sum += weight * clamp(score)
		weights += weight
	}
	part(0.50, asleep/3600/8)
	if n.Efficiency != nil {
		part(0.25, (*n.Efficiency-60)/35)
	}
	if n.REM != nil && n.Deep != nil {
		part(0.15, float64(*n.REM+*n.Deep)/asleep/0.45)
	}
	if n.Latency != nil {
		part(0.10, (60-float64(*n.Latency)/60)/40)
	}
	return int64(math.Round(100 * sum / weights)), true
}

func clamp(x float64) float64 { return min(max(x, 0), 1) }

// macro computes a derived value of a sleep session.
func (m *models) macro(name string, r *tables.Row) tables.Cell {
	s, ok := r.Summary.(*healthdata.Sleep)
	if !ok {
		return tables.Cell{}
	}
	offset := int64(r.Record.Offset) * second
	start, end := s.BedtimeStart.UnixMicro()+offset, s.BedtimeStop.UnixMicro()+offset
	switch name {
	case "chronotype":
		return vector.TextCell(chronotype(start + (end-start)/2))
	case "asleep_at":
		if s.Latency != nil {
			return vector.IntCell(start + *s.Latency*second)
		}
	case "awake_at":
		return awakeAt(r.Cycle, start)
	case "awakenings":
		return awakenings(r.Cycle)
	case "sleep_score":
		if v, ok := m.score(nightOf(s)); ok {
			return vector.IntCell(v)
		}
	}
	return tables.Cell{}
}

func nightOf(s *healthdata.Sleep) SleepNight {
	return SleepNight{Asleep: s.Total, REM: s.REM, Deep: s.Deep, Latency: s.Latency, Efficiency: s.Efficiency}
}

// chronotype returns the chronotype by the local time of the middle of the sleep, in microseconds since 1970: lark from
// 17:00 to 03:30, third to 06:00, else owl.
func chronotype(middle int64) string {
	switch t := middle - floorDiv(middle, day)*day; {
	case t >= 17*hour, t <= 3*hour+30*minute:
		return "lark"
	case t <= 6*hour:
		return "third"
	default:
		return "owl"
	}
}

func isAsleep(t healthdata.SleepStage) bool {
	return t == healthdata.SleepStageDeep || t == healthdata.SleepStageLight || t == healthdata.SleepStageREM
}

// awakeAt returns the end of the last stage in which the person slept; null if there is none. Stages ascend by start.
// start is the start of the session.
func awakeAt(c *healthdata.SleepCycle, start int64) tables.Cell {
	if c == nil {
		return tables.Cell{}
	}
	for i := len(c.StageType) - 1; i >= 0; i-- {
		if isAsleep(c.StageType[i]) || c.StageType[i] == healthdata.SleepStageByHand {
			return vector.IntCell(start + c.StageEndOffsetSecond[i]*second)
		}
	}
	return tables.Cell{}
}

// awakenings counts the changes from sleep to being awake; null if the session has no sleep cycle.
func awakenings(c *healthdata.SleepCycle) tables.Cell {
	if c == nil {
		return tables.Cell{}
	}
	n := int64(0)
	for i := 1; i < len(c.StageType); i++ {
		if isAsleep(c.StageType[i-1]) && c.StageType[i] == healthdata.SleepStageAwake {
			n++
		}
	}
	return vector.IntCell(n)
}
