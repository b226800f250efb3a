package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// bareWork lists the tables that the plain handler ([bare]) reads and writes for one operation. The handler uses the
// newest rows of the user, in copies of the server's tables.
type bareWork struct {
	read   []string // tables that the first round trip reads; of tables in ofTeam, it reads rows of the team
	update []string // tables of which the first round trip locks one row, and the last one writes it
	insert []string // tables to which the last round trip adds a row
}

// bareWorks has the work of each operation, in the order of the variable operations.
var bareWorks = []bareWork{
	{[]string{"user", "team_settings", "continuous_query"}, []string{"pull_task", "series", "series_header", "webhook_key"}, []string{"webhook_event", "access_line"}},
	{[]string{"user", "series_header", "series"}, nil, []string{"access_line"}},
	{[]string{"user", "record"}, nil, []string{"access_line"}},
	{[]string{"user"}, nil, []string{"access_line"}},
	{[]string{"user", "series_header", "series"}, nil, []string{"access_line"}},
	{[]string{"user", "order"}, nil, []string{"access_line"}},
	{[]string{"user", "team_settings", "continuous_query"}, []string{"pull_task", "record", "record_version", "webhook_key"}, []string{"webhook_event", "access_line"}},
	{[]string{"user", "order"}, nil, []string{"access_line"}},
	{[]string{"user", "team_settings"}, nil, []string{"order", "order_lab_work", "order_name", "order_transaction", "webhook_key", "webhook_event", "access_line"}},
}

// ofTeam lists the tables whose rows belong to a team and not to a user.
var ofTeam = []string{"team_settings", "continuous_query"}

// mostRead is the highest number of rows that the plain handler reads from a table. A query for a week of samples
// reads fewer rows.
const mostRead = 16

// bare is a plain handler with net/http and pgx, to compare the server with. For each request it reads and writes rows
// in copies of the tables that the server uses, including an event and an access log line, in one transaction of two
// round trips. It checks and merges nothing, and sends recorded answers of the server.
type bare struct {
	pool    *pgxpool.Pool
	team    uuid.UUID
	docs    map[string][]byte // by table, the document that inserted rows get, copied from a row of the server
	answers [][]byte          // recorded answers of the server, by the index in operations
	server  *http.Server
	url     string
}

// newBare copies the server's tables, records its answers, and starts the plain handler.
func newBare(ctx context.Context, m *mix, address string) (*bare, error) {
	pool, err := pgxpool.New(ctx, address)
	if err != nil {
		return nil, err
	}
	b := &bare{pool: pool, docs: map[string][]byte{}, answers: make([][]byte, len(operations))}
	if err = b.copyRows(ctx); err == nil {
		err = b.recordAnswers(ctx, m)
	}
	var listener net.Listener
	if err == nil {
		listener, err = (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	}
	if err != nil {
		pool.Close()
		return nil, fmt.Errorf("the plain handler: %w", err)
	}
	b.url = "http://" + listener.Addr().String()
	b.server = &http.Server{Handler: b, ReadHeaderTimeout: time.Minute}
	go func() { _ = b.server.Serve(listener) }()
	return b, nil
}

func (b *bare) close() {
	_ = b.server.Close()
	b.pool.Close()
}

// copyRows creates the database schema bare, with copies of the server's tables.
func (b *bare) copyRows(ctx context.Context) error {
	var tables []string
	for _, w := range bareWorks {
		tables = slices.Concat(tables, w.read, w.update, w.insert)
	}
	slices.Sort(tables)
	if _, err := b.pool.Exec(ctx, "create schema bare"); err != nil {
		return err
	}
	for _, t := range slices.Compact(tables) {
		_, err := b.pool.Exec(ctx, fmt.Sprintf(`create table bare.%[1]q (like healthlab.%[1]q including all) with (fillfactor = 85);
			insert into bare.%[1]q select * from healthlab.%[1]q; analyze bare.%[1]q`, t))
		if err != nil {
			return err
		}
		var doc []byte
		err = b.pool.QueryRow(ctx, fmt.Sprintf("select doc from bare.%q where doc is not null limit 1", t)).Scan(&doc)
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		b.docs[t] = doc
	}
	return b.pool.QueryRow(ctx, `select team from bare."user" limit 1`).Scan(&b.team)
}

// recordAnswers sends one request of each operation to the server, and records the answers.
func (b *bare) recordAnswers(ctx context.Context, m *mix) error {
	for i, op := range operations {
		var err error
		if b.answers[i], err = m.answer(ctx, op.make(m, m.people[0], i)); err != nil {
			return err
		}
	}
	return nil
}

// ServeHTTP does the work of an operation for a user. The path of a request is /OPERATION/USER, with the index of the
// operation in operations and the id of the user.
func (b *bare) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	op, name, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	i, err := strconv.Atoi(op)
	user, invalid := uuid.Parse(name)
	if err = errors.Join(err, invalid); err == nil {
		_, err = io.Copy(io.Discard, r.Body)
	}
	if err == nil {
		var conn *pgxpool.Conn
		if conn, err = b.pool.Acquire(r.Context()); err == nil {
			err = b.run(r.Context(), conn.Conn(), &bareWorks[i], user)
			conn.Release()
		}
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("content-type", "application/json")
	_, _ = w.Write(b.answers[i])
}

// run makes the two round trips of an operation: reading with begin, then writing with commit.
func (b *bare) run(ctx context.Context, conn *pgx.Conn, work *bareWork, user uuid.UUID) error {
	first := &pgx.Batch{}
	first.Queue("begin")
	for _, t := range work.read {
		b.queueRead(first, t, user, "limit "+strconv.Itoa(mostRead))
	}
	for _, t := range work.update {
		b.queueRead(first, t, user, "limit 1 for update")
	}
	type row struct{ id, doc []byte }
	found := make([]*row, len(work.update))
	answers := conn.SendBatch(ctx, first)
	_, err := answers.Exec()
	for i := range len(work.read) + len(work.update) {
		rows, failed := answers.Query()
		if failed != nil {
			err = errors.Join(err, failed)
			break
		}
		for rows.Next() {
			one := &row{}
			err = errors.Join(err, rows.Scan(&one.id, &one.doc))
			if n := i - len(work.read); n >= 0 {
				found[n] = one
			}
		}
		err = errors.Join(err, rows.Err())
	}
	if err = errors.Join(err, answers.Close()); err != nil {
		_, _ = conn.Exec(ctx, "rollback")
		return err
	}
	last := &pgx.Batch{}
	for i, t := range work.update {
		if found[i] != nil {
			last.Queue(fmt.Sprintf("update bare.%q set revision = revision + 1, doc = $3 where team = $1 and id = $2"+ofUser(t, 4), t), b.args(t, user, b.team, found[i].id, found[i].doc)...)
		}
	}
	for _, t := range work.insert {
		id := uuid.Must(uuid.NewV7())
		last.Queue(fmt.Sprintf("insert into bare.%q (team, id, user_id, due, revision, doc) values ($1, $2, $3, now(), 1, $4)", t), b.team, id[:], user, b.docs[t])
	}
	last.Queue("commit")
	if err := conn.SendBatch(ctx, last).Close(); err != nil {
		_, _ = conn.Exec(ctx, "rollback")
		return err
	}
	return nil
}

func (b *bare) queueRead(batch *pgx.Batch, t string, user uuid.UUID, end string) {
	batch.Queue(fmt.Sprintf("select id, doc from bare.%q where team = $1%s order by id desc %s", t, ofUser(t, 2), end), b.args(t, user, b.team)...)
}

func ofUser(table string, n int) string {
	if slices.Contains(ofTeam, table) {
		return ""
	}
	return fmt.Sprintf(" and user_id = $%d", n)
}

func (b *bare) args(table string, user uuid.UUID, args ...any) []any {
	if slices.Contains(ofTeam, table) {
		return args
	}
	return append(args, user)
}

// compareBare sends the mix of requests to the server and to the plain handler in turn, as fast as they answer, and
// prints how many requests per second each answered.
func compareBare(ctx context.Context, c config, s *server, address string, out io.Writer) error {
	m := newMix(c, func() *server { return s })
	fmt.Fprintf(out, "%d users of one team with a week of data …\n", c.users)
	if err := m.seed(ctx); err != nil {
		return fmt.Errorf("seed: %w", err)
	}
	b, err := newBare(ctx, m, address)
	if err != nil {
		return err
	}
	defer b.close()
	fmt.Fprintf(out, "%d callers for %v, by turns of %v, after %v …\n", c.workers, c.duration, c.turn, c.warmup)
	do := [2]func(context.Context, due) error{m.do, func(ctx context.Context, d due) error {
		d.path = "/" + strconv.Itoa(d.op) + "/" + d.user.id
		_, err := m.answerOf(ctx, &server{url: b.url}, d.request)
		return err
	}}
	var samples [2][]sample
	var took [2]time.Duration
	for began, warm := time.Now(), true; ctx.Err() == nil; warm = time.Since(began) < c.warmup {
		if time.Since(began) >= c.warmup+c.duration {
			break
		}
		for i := range do {
			at := time.Now()
			got := m.sendFor(ctx, do[i], c.turn)
			if !warm {
				samples[i], took[i] = append(samples[i], got...), took[i]+time.Since(at)
			}
		}
	}
	printBare(out, samples, took)
	return ctx.Err()
}

// sendFor sends random requests of the mix with do for a duration (long), and returns a sample of each, with the
// latency from the instant at which the request was sent. m.workers goroutines send concurrently; each sends its next
// request after the answer to the last one.
func (m *mix) sendFor(ctx context.Context, do func(context.Context, due) error, long time.Duration) (all []sample) {
	queue, found := make(chan due), make([][]sample, m.workers)
	var group sync.WaitGroup
	for w := range m.workers {
		group.Go(func() {
			for d := range queue {
				at := time.Now()
				err := do(ctx, d)
				found[w] = append(found[w], sample{op: d.op, latency: time.Since(at), failed: err != nil})
			}
		})
	}
	for began := time.Now(); time.Since(began) < long && ctx.Err() == nil; m.n++ {
		u, op := m.people[rand.N(len(m.people))], pick()
		queue <- due{op: op, user: u, request: operations[op].make(m, u, m.n)}
	}
	close(queue)
	group.Wait()
	return slices.Concat(found...)
}

func printBare(out io.Writer, samples [2][]sample, took [2]time.Duration) {
	var a [2]float64 // requests per second of the server and the plain handler
	for i := range a {
		a[i] = float64(len(samples[i])) / max(took[i].Seconds(), 1e-9)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\tserver: count\tfailed\tp50\tp99\tplain handler: count\tfailed\tp50\tp99\t")
	for op := -1; op < len(operations); op++ {
		name, of := "all", samples
		if op >= 0 {
			name = operations[op].name
			for i := range of {
				of[i] = slices.DeleteFunc(slices.Clone(of[i]), func(s sample) bool { return s.op != op })
			}
		}
		x, y := summarize(name, of[0]), summarize(name, of[1])
		fmt.Fprintf(w, "%s\t%d\t%d\t%v\t%v\t%d\t%d\t%v\t%v\t\n", name, x.Count, x.Failed, x.P50, x.P99, y.Count, y.Failed, y.P50, y.P99)
	}
	_ = w.Flush()
	fmt.Fprintf(out, "all load on one team: server %.0f, plain handler %.0f requests a second, ratio %.2f\n", a[0], a[1], a[0]/max(a[1], 1))
}
