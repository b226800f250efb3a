package healthconnect

import (
	"math"
	"slices"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// night is the sleep session that is being read.
type night struct {
	id    int64
	sleep *healthdata.Sleep
	cycle *healthdata.SleepCycle
}

// nights imports sleep sessions with their stages.
func (i *importer) nights() error {
	columns, join := slices.Concat(common, sessionColumns), " order by r.row_id"
	if i.columns[stagesTable] != nil {
		columns = append(columns, "s.parent_key", "s.stage_start_time", "s.stage_end_time", "s.stage_type")
		join = " left join " + stagesTable + " s on s.parent_key = r.row_id order by r.row_id, s.stage_start_time"
	}
	var now night
	bad := int64(-1)
	err := i.each(sleepTable, join, columns, func(r row) error {
		id := r.id()
		if id == bad {
			return nil
		}
		if now.sleep == nil || now.id != id {
			if err := i.handOverNight(now); err != nil {
				return err
			}
			now = night{id: id}
			start, end, offsets, ok := r.session()
			if !ok {
				i.skip(sleepTable, "bad time")
				bad = id
				return nil
			}
			head := healthdata.Head{Source: i.source(r), ExternalID: r.external(sleepTable, start)}
			now.sleep = &healthdata.Sleep{Head: head, BedtimeStart: start, BedtimeStop: end, TimezoneOffset: offsets.EndTimezoneOffset, SessionOffsets: offsets}
			now.cycle = &healthdata.SleepCycle{Head: head, SessionStart: start, SessionEnd: end, TimezoneOffset: offsets.EndTimezoneOffset, SessionOffsets: offsets}
		}
		if !r.null("parent_key") && !now.stage(r) {
			i.skip(stagesTable, "bad time or stage")
		}
		return nil
	})
	if err != nil {
		return err
	}
	return i.handOverNight(now)
}

func second(d time.Duration) int64 { return int64(d.Round(time.Second) / time.Second) }

// stage adds a stage. It returns false for an invalid stage, or one outside of the session or before the previous
// stage.
func (n *night) stage(r row) bool {
	start, ok1 := r.instant("stage_start_time")
	end, ok2 := r.instant("stage_end_time")
	number, ok3 := r.integer("stage_type")
	stage, ok4 := stageTypes[number]
	from, to := second(start.Sub(n.sleep.BedtimeStart.Time)), second(end.Sub(n.sleep.BedtimeStart.Time))
	last := int64(0)
	if k := len(n.cycle.StageEndOffsetSecond); k > 0 {
		last = n.cycle.StageEndOffsetSecond[k-1]
	}
	if !ok1 || !ok2 || !ok3 || !ok4 || from < last || to < from || end.After(n.sleep.BedtimeStop.Time) {
		return false
	}
	n.sleep.AddStage(stage, to-from)
	n.cycle.StageStartOffsetSecond = append(n.cycle.StageStartOffsetSecond, from)
	n.cycle.StageEndOffsetSecond = append(n.cycle.StageEndOffsetSecond, to)
	n.cycle.StageType = append(n.cycle.StageType, stage)
	return true
}

// handOverNight passes a sleep session and its stages to the sink, unless n is empty.
func (i *importer) handOverNight(n night) error {
	if n.sleep == nil {
		return nil
	}
	if err := i.summaries("sleep", n.sleep); err != nil {
		return err
	}
	if len(n.cycle.StageType) == 0 {
		return nil
	}
	return i.summaries("sleep_cycle", n.cycle)
}

// workouts imports exercise sessions.
func (i *importer) workouts() error {
	columns := slices.Concat(common, sessionColumns, []string{"exercise_type", "title"})
	return i.each(exerciseTable, "", columns, func(r row) error {
		start, end, offsets, ok := r.session()
		if !ok {
			i.skip(exerciseTable, "bad time")
			return nil
		}
		sport := "other"
		if n, ok := r.integer("exercise_type"); ok && n >= 0 && n < int64(len(sports)) {
			sport = sports[n]
		}
		w := &healthdata.Workout{Head: healthdata.Head{Source: i.source(r), ExternalID: r.external(exerciseTable, start)},
			TimeStart: start, TimeEnd: end, TimezoneOffset: offsets.StartTimezoneOffset, SessionOffsets: offsets, Sport: healthdata.SportOf(sport)}
		if title, ok := r.text("title"); ok && len(title) <= 200 {
			w.Title = &title
		}
		return i.summaries("workouts", w)
	})
}

// height imports the newest height, as part of the profile.
func (i *importer) height() error {
	var newest healthlab.Time
	var profile *healthdata.Profile
	err := i.each(heightTable, "", slices.Concat(common, instantColumns, []string{"height"}), func(r row) error {
		metres, ok := r.number("height")
		at, _, _, inTime := r.span(false)
		cm := int64(math.Round(100 * metres))
		if !ok || !inTime || i.out.Ahead(at) || cm <= 0 || cm > 300 {
			i.skip(heightTable, "no value or bad time")
			return nil
		}
		if profile == nil || !at.Before(newest.Time) {
			newest = at
			profile = &healthdata.Profile{Height: &cm}
			profile.Source = healthdata.Source{Provider: i.opts.Provider, Type: healthdata.SourceApp}
		}
		return nil
	})
	if err != nil || profile == nil {
		return err
	}
	return i.summaries("profile", profile)
}
