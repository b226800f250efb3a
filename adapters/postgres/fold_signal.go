package postgres

import "sync/atomic"

// foldSignal counts the segments that this process begins, so that RunFolding need not wait for
// its next look. Safe for concurrent use.
type foldSignal struct {
	begun atomic.Uint64
	wake  chan struct{}
}

// wakeEvery is how many segments are begun until RunFolding looks whether a series has many.
const wakeEvery = 16

func (f *foldSignal) began(n int) {
	if now := f.begun.Add(uint64(n)); now/wakeEvery == (now-uint64(n))/wakeEvery {
		return
	}
	select {
	case f.wake <- struct{}{}:
	default: // it is on its way
	}
}
