package service_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
)

// slot is how far apart values of a person are.
const slot = 3 * time.Hour

const slotsOfDay = 8

// values are a person's values, one for each slot from the beginning on. Unknown ones are absent.
type values struct {
	begin time.Time
	of    []int16
}

const absent = -1

func (v *values) set(at time.Time, value float64) {
	i := int(at.Sub(v.begin) / slot)
	for len(v.of) <= i {
		v.of = append(v.of, absent)
	}
	v.of[i] = int16(value)
}

func (v *values) at(t time.Time) int16 {
	if i := int(t.Sub(v.begin) / slot); !t.Before(v.begin) && i < len(v.of) {
		return v.of[i]
	}
	return absent
}

func (v *values) sum() (sum int) {
	for _, x := range v.of {
		sum += int(max(x, 0))
	}
	return sum
}

// tracker is a provider of heart rates. Its grants end after half a day and are rotated, it is down
// on some days, refuses some requests as too many, and loses some answers of renewals.
type tracker struct {
	number uint64 // of the run, for what happens
	begin  time.Time

	accounts map[string]*account // by name

	pulls, rotations, lost, limited, outages, refused int

	hour        time.Time // of the last requests
	asked, most int       // requests in that hour, and in the hour with the most
}

// account is what the provider has of one person.
type account struct {
	heart  values
	serial int // of the newest grant
	asked  int
}

// grantLife is how long a grant works.
const grantLife = 12 * time.Hour

var errDown = errors.New("the provider is down")

// chance draws a number below n, the same for the same run and words.
func (p *tracker) chance(n uint64, words ...any) bool {
	x := p.number ^ 0x9e3779b97f4a7c15
	for _, b := range []byte(fmt.Sprint(words...)) {
		x = (x ^ uint64(b)) * 0x100000001b3
		x ^= x >> 29
	}
	return x%n == 0
}

func (p *tracker) down(now time.Time) bool {
	return p.chance(20, "outage", int(now.Sub(p.begin)/(24*time.Hour)))
}

func (p *tracker) account(name string) *account {
	a := p.accounts[name]
	if a == nil {
		a = &account{heart: values{begin: p.begin}}
		p.accounts[name] = a
	}
	return a
}

func secretOf(name string, serial int) []byte { return []byte(name + "|" + strconv.Itoa(serial)) }

// open returns the account of a secret, nil if the secret works no more: the newest one and the one
// before it do.
func (p *tracker) open(secret []byte) (*account, string) {
	var name string
	var serial int
	for i := range secret {
		if secret[i] == '|' {
			name = string(secret[:i])
			serial, _ = strconv.Atoi(string(secret[i+1:]))
		}
	}
	if a := p.accounts[name]; a != nil && serial >= a.serial-1 {
		return a, name
	}
	return nil, name
}

// SignIn makes the first grant.
func (p *tracker) SignIn(_ context.Context, r linking.PasswordRequest) (linking.PasswordResponse, error) {
	p.account(r.Username)
	return linking.PasswordResponse{Grant: linking.Grant{ExternalUserID: r.Username, Secret: secretOf(r.Username, 0), ExpiresAt: time.Now().Add(grantLife)}}, nil
}

// CompleteMFA is never called: there is no challenge.
func (p *tracker) CompleteMFA(context.Context, linking.MFARequest) (linking.Grant, error) {
	return linking.Grant{}, errDown
}

// Refresh rotates a grant. At times the answer is lost on its way.
func (p *tracker) Refresh(_ context.Context, secret []byte) (linking.Renewal, error) {
	if p.down(time.Now()) {
		p.outages++
		return linking.Renewal{}, errDown
	}
	a, name := p.open(secret)
	if a == nil {
		p.refused++
		return linking.Renewal{}, &linking.GrantError{}
	}
	before := secretOf(name, a.serial)
	if string(secret) == string(before) { // else the answer was lost, and is given again
		a.serial++
		p.rotations++
		if p.chance(50, "lost", name, a.serial) {
			p.lost++
			return linking.Renewal{}, errDown
		}
	}
	return linking.Renewal{Secret: secretOf(name, a.serial), ExpiresAt: time.Now().Add(grantLife)}, nil
}

// Pull returns heart rates. One request in fifty is one too many.
func (p *tracker) Pull(_ context.Context, r linking.PullRequest) (linking.PullPage, error) {
	now := time.Now()
	if hour := now.Truncate(time.Hour); hour != p.hour {
		p.hour, p.asked = hour, 0
	}
	p.asked++
	p.most = max(p.most, p.asked)
	if p.down(now) {
		p.outages++
		return linking.PullPage{}, errDown
	}
	a, name := p.open(r.Secret)
	if a == nil {
		p.refused++
		return linking.PullPage{}, healthlab.Unauthenticated
	}
	a.asked++
	if p.chance(50, "limit", name, a.asked) {
		p.limited++
		return linking.PullPage{}, &linking.RateLimitError{Scope: linking.RateUser, Wait: 10 * time.Minute}
	}
	p.pulls++
	var samples []healthdata.Sample
	for at := r.From.Truncate(slot); at.Before(r.To) && !at.After(now); at = at.Add(slot) {
		if v := a.heart.at(at); v != absent && !at.Before(r.From) {
			samples = append(samples, healthdata.Sample{Timestamp: healthlab.At(at), Unit: "bpm", Value: healthdata.Number(float64(v))})
		}
	}
	if len(samples) == 0 {
		return linking.PullPage{}, nil
	}
	return linking.PullPage{Items: []linking.PullItem{{Source: healthdata.Source{Type: healthdata.SourceWatch}, Samples: samples}}}, nil
}

func (p *tracker) record(name string, at time.Time, bpm float64) {
	p.account(name).heart.set(at, bpm)
}
