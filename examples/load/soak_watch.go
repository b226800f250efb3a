package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// reading has the measurements at one instant of a run.
type reading struct {
	at      time.Duration // from the start of the load
	writes  int           // number of acknowledged writes
	memory  [2]int64      // resident memory of each server in bytes; 0 while it is down
	handles [2]int        // open files of each server
	tables  map[string]int64
	log     int64 // bytes of the write-ahead log
	text    int64 // bytes of the logs of the servers and of PostgreSQL
}

// readings is the number of readings in a long run, from which the interval between them follows.
const readings = 600

// watch takes readings at intervals until ctx ends, and returns them.
func (s *soak) watch(ctx context.Context) (all []reading) {
	tick := time.NewTicker(max(time.Second, s.duration/readings))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return all
		case <-tick.C:
		}
		r := reading{at: time.Since(*s.began.Load()), writes: s.truth.count()}
		s.mu.Lock()
		for i, one := range s.servers {
			if one != nil {
				r.memory[i], r.handles[i] = residentBytes(one.process.Process.Pid), openFiles(one.process.Process.Pid)
			}
		}
		s.mu.Unlock()
		var err error
		if r.tables, r.log, err = s.sizes(ctx); err != nil {
			continue // PostgreSQL was killed and is down
		}
		for _, name := range []string{"server-1.log", "server-2.log", "db/log"} {
			if info, err := os.Stat(filepath.Join(s.dir, name)); err == nil {
				r.text += info.Size()
			}
		}
		all = append(all, r)
	}
}

// sizes returns sizes in bytes: of each table with its indexes and all its partitions, and of the write-ahead log.
func (s *soak) sizes(ctx context.Context) (tables map[string]int64, log int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	conn, err := s.connect(ctx)
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if err := conn.QueryRow(ctx, `select sum(size)::bigint from pg_ls_waldir()`).Scan(&log); err != nil {
		return nil, 0, err
	}
	rows, err := conn.Query(ctx, `select coalesce(pg_partition_root(c.oid)::regclass::text, c.oid::regclass::text), sum(pg_total_relation_size(c.oid))::bigint
		from pg_class c join pg_namespace n on n.oid = c.relnamespace where c.relkind = 'r' and n.nspname like 'healthlab%' group by 1`)
	if err != nil {
		return nil, 0, err
	}
	defer rows.Close()
	tables = map[string]int64{}
	for rows.Next() {
		var name string
		var size int64
		if err := rows.Scan(&name, &size); err != nil {
			return nil, 0, err
		}
		_, name, _ = strings.Cut(name, ".")
		tables[name] = size
	}
	return tables, log, rows.Err()
}

func residentBytes(pid int) int64 {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, rest, _ := bytes.Cut(text, []byte("VmRSS:"))
	n, _ := strconv.ParseInt(string(bytes.TrimSpace(before(rest, "kB"))), 10, 64)
	return n << 10
}

func before(text []byte, end string) []byte {
	head, _, _ := bytes.Cut(text, []byte(end))
	return head
}

func openFiles(pid int) int {
	files, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	return len(files)
}

// queues lists the tables from which rows are deleted when their work is done. All other tables grow with the
// stored data.
var queues = []string{"webhook_pending", "webhook_delivery", "segment", "pull_task", "bulk_item", "continuous_task", "order_hold"}

// judged is the shortest duration of a run in which the growth of memory and tables is checked.
const judged = 2 * time.Minute

// growth checks that memory, files and tables do not grow without end, in a run of a duration (long). It compares the
// last third of the run with the second third; in the first third the servers warm up.
//
// The median memory and the median number of open files of the server that is never killed, and the largest size of
// each queue, may grow by a fifth. The growth rate of other tables (per acknowledged write) and of logs (per minute)
// may be half as large again. A constant allowance covers changes in steps, such as garbage collections, file extents
// and vacuum runs.
func growth(all []reading, long time.Duration) []check {
	if long < judged {
		return nil
	}
	var earlier, later []reading
	for _, r := range all {
		switch {
		case r.at >= long*2/3:
			later = append(later, r)
		case r.at >= long/3:
			earlier = append(earlier, r)
		}
	}
	if len(earlier) < 2 || len(later) < 2 {
		return []check{{Name: "There are readings of the middle and of the end", Wrong: []string{"PostgreSQL was away for too long"}}}
	}
	const mega = 1 << 20
	memory := compare("Memory of the server that was never killed, MB",
		median(earlier, func(r reading) float64 { return float64(r.memory[0]) / mega }),
		median(later, func(r reading) float64 { return float64(r.memory[0]) / mega }), level, 16)
	files := compare("Open files and connections of that server",
		median(earlier, func(r reading) float64 { return float64(r.handles[0]) }),
		median(later, func(r reading) float64 { return float64(r.handles[0]) }), level, 10)
	text := compare("Logs of the servers and of PostgreSQL, kB a minute",
		rate(earlier, func(r reading) float64 { return float64(r.text) / 1024 }, minutes),
		rate(later, func(r reading) float64 { return float64(r.text) / 1024 }, minutes), speed, 20)
	wal := check{Name: "Write-ahead log, MB, at most a quarter above max_wal_size"}
	top := largest(later, func(r reading) float64 { return float64(r.log) })
	wal.Found = fmt.Sprintf("%.0f of %d", top/mega, walLimit/mega)
	if top > 1.25*walLimit {
		wal.Wrong = append(wal.Wrong, "it is larger")
	}
	queued, kept := check{Name: "Queues, MB at most"}, check{Name: "Other tables, bytes for each acknowledged write"}
	var sums [4]float64
	for name := range later[0].tables {
		size := func(r reading) float64 { return float64(r.tables[name]) }
		var one check
		if slices.Contains(queues, name) {
			a, b := largest(earlier, size)/mega, largest(later, size)/mega
			sums[0], sums[1] = sums[0]+a, sums[1]+b
			one = compare(name, a, b, level, 4)
			queued.Wrong = append(queued.Wrong, one.Wrong...)
			continue
		}
		a, b := rate(earlier, size, writes), rate(later, size, writes)
		sums[2], sums[3] = sums[2]+a, sums[3]+b
		one = compare(name, a, b, speed, 4*mega/max(1, float64(later[len(later)-1].writes-later[0].writes)))
		kept.Wrong = append(kept.Wrong, one.Wrong...)
	}
	queued.Found = fmt.Sprintf("%.1f in the middle, %.1f at the end", sums[0], sums[1])
	kept.Found = fmt.Sprintf("%.0f in the middle, %.0f at the end", sums[2], sums[3])
	return []check{memory, files, queued, kept, wal, text}
}

// level is the factor by which an amount may be larger in the last third of a run than in the second, speed the
// factor for a growth rate.
const level, speed = 1.2, 1.5

// compare returns a check that fails if a value at the end of a run is above factor times its value in the middle
// plus slack.
func compare(name string, earlier, later, factor, slack float64) check {
	c := check{Name: name, Found: fmt.Sprintf("%.1f in the middle, %.1f at the end", earlier, later)}
	if later > factor*earlier+slack {
		c.Wrong = []string{name + ": " + c.Found}
	}
	return c
}

func median(some []reading, of func(reading) float64) float64 {
	values := make([]float64, len(some))
	for i, r := range some {
		values[i] = of(r)
	}
	slices.Sort(values)
	return values[len(values)/2]
}

func largest(some []reading, of func(reading) float64) (top float64) {
	for _, r := range some {
		top = max(top, of(r))
	}
	return top
}

func rate(some []reading, of, unit func(reading) float64) float64 {
	first, last := some[0], some[len(some)-1]
	return (of(last) - of(first)) / max(1e-9, unit(last)-unit(first))
}

func minutes(r reading) float64 { return r.at.Minutes() }
func writes(r reading) float64  { return float64(r.writes) }
