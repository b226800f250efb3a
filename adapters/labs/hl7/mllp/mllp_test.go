package mllp_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/labs/hl7/mllp"
)

func frame(text string) string { return string(mllp.Append(nil, []byte(text))) }

func TestReader_findsFramesInNoise(t *testing.T) {
	for name, tt := range map[string]struct {
		stream string
		want   []string // messages, or faults
	}{
		"two":                         {frame("one") + frame("two"), []string{"one", "two"}},
		"noise around":                {"noise\r\n" + frame("one") + "\r\nmore" + frame("two") + "x", []string{"one", "two"}},
		"no carriage return":          {"\x0bone\x1c\x0btwo\x1c", []string{"one", "two"}},
		"an end block in the text":    {"\x0bo\x1cn\x1c\x1ce\x1c\r", []string{"o\x1cn\x1c\x1ce"}},
		"empty":                       {frame(""), []string{""}},
		"the largest":                 {frame("12345678"), []string{"12345678"}},
		"too large":                   {frame("123456789") + frame("next"), []string{"!large", "next"}},
		"far too large":               {frame(strings.Repeat("x", 100_000)) + frame("next"), []string{"!large", "next"}},
		"not ended, then another":     {"\x0bold" + frame("next"), []string{"!end", "next"}},
		"starts over and over":        {"\x0b\x0b\x0b" + frame("next"), []string{"!end", "!end", "!end", "next"}},
		"too large and not ended":     {"\x0b" + strings.Repeat("x", 100) + frame("next"), []string{"!end", "next"}},
		"ends in a frame":             {frame("one") + "\x0btwo", []string{"one", "!eof"}},
		"an end without a start":      {"\x1c\r" + frame("one"), []string{"one"}},
		"a return that is not there":  {"\x0bone\x1c" + "noise" + frame("x"), []string{"!end", "x"}},
		"nothing":                     {"", nil},
		"nothing that begins a frame": {"hello", nil},
	} {
		for split, in := range map[string]io.Reader{"whole": strings.NewReader(tt.stream), "in bytes": iotest.OneByteReader(strings.NewReader(tt.stream))} {
			t.Run(name+"/"+split, func(t *testing.T) {
				r := mllp.NewReader(in, 8)
				var got []string
				for {
					m, err := r.Next()
					if errors.Is(err, io.EOF) {
						break
					}
					switch {
					case err == nil:
						got = append(got, string(m))
					case errors.Is(err, mllp.ErrTooLarge):
						got = append(got, "!large")
					case errors.Is(err, mllp.ErrUnterminated):
						got = append(got, "!end")
					case errors.Is(err, io.ErrUnexpectedEOF):
						got = append(got, "!eof")
					default:
						require.NoError(t, err)
					}
				}
				require.Equal(t, tt.want, got)
			})
		}
	}
}

func FuzzReader(f *testing.F) {
	f.Add([]byte(frame("one") + "noise" + frame("two")))
	f.Add([]byte("\x0bold\x0b\x1c\x1c\r\x0bx"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		r, slow := mllp.NewReader(bytes.NewReader(stream), 16), mllp.NewReader(iotest.OneByteReader(bytes.NewReader(stream)), 16)
		for {
			m, err := r.Next()
			n, err2 := slow.Next()
			if !bytes.Equal(m, n) || !errors.Is(err2, err) && err != nil {
				t.Fatal("how the bytes come makes a difference")
			}
			if errors.Is(err, io.EOF) {
				return
			}
			if err == nil && (len(m) > 16 || bytes.IndexByte(m, 0x0b) >= 0) {
				t.Fatal("no such frame")
			}
		}
	})
}

// echo answers with what it was sent, and with what was wrong.
var echo = mllp.HandlerFunc(func(_ context.Context, message []byte, frameErr error) []byte {
	switch {
	case frameErr != nil:
		return []byte("refused: " + frameErr.Error())
	case string(message) == "silence":
		return nil
	}
	return append([]byte("got "), message...)
})

func TestServer_continuesAfterABadFrame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		ctx, cancel := context.WithCancel(t.Context())
		over := make(chan struct{})
		go func() {
			defer close(over)
			mllp.NewServer(echo, &mllp.ServerOptions{MaxBytes: 1 << 10, FrameTimeout: time.Minute}).ServeConn(ctx, theirs)
		}()
		answers := mllp.NewReader(ours, 0)
		send := func(text string) {
			_, err := ours.Write([]byte(text))
			require.NoError(t, err)
		}
		next := func() string {
			m, err := answers.Next()
			require.NoError(t, err)
			return string(m)
		}
		send(frame("one"))
		require.Equal(t, "got one", next())

		// A gigabyte, or as much of it as matters: none of it is kept.
		send("\x0b")
		for range 64 {
			send(strings.Repeat("x", 1<<16))
		}
		send("\x1c\r")
		require.Equal(t, "refused: "+mllp.ErrTooLarge.Error(), next())

		// A frame without an end is refused after a minute.
		began := time.Now()
		send("\x0bhalf a message")
		require.Equal(t, "refused: "+mllp.ErrUnterminated.Error(), next())
		require.Equal(t, time.Minute, time.Since(began))

		send(frame("silence") + "late rest of something\x1c\r" + frame("two"))
		require.Equal(t, "got two", next())
		time.Sleep(100 * time.Hour) // an idle connection stays
		send(frame("three"))
		require.Equal(t, "got three", next())

		cancel()
		<-over
		_, err := answers.Next()
		require.ErrorIs(t, err, io.EOF)
	})
}

func TestServer_closesAnIdleConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		go mllp.NewServer(echo, &mllp.ServerOptions{IdleTimeout: time.Hour}).ServeConn(t.Context(), theirs)
		began := time.Now()
		_, err := mllp.NewReader(ours, 0).Next()
		require.ErrorIs(t, err, io.EOF)
		require.Equal(t, time.Hour, time.Since(began))
	})
}

func anything([]byte) bool { return true }

// While a laboratory is down, silent or slow, the client sends the same bytes again at
// growing intervals.
func TestClient_resendsAtGrowingIntervals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []string
		began := time.Now()
		dials := 0
		dial := func(context.Context, string) (net.Conn, error) {
			dials++
			got = append(got, fmt.Sprint(time.Since(began)))
			if dials == 1 {
				return nil, errors.New("refused")
			}
			ours, theirs := net.Pipe()
			go func(dial int) {
				m, err := mllp.NewReader(theirs, 0).Next()
				if err == nil && dial > 2 {
					_, _ = theirs.Write(mllp.Append(mllp.Append(nil, []byte("late answer")), m))
				}
			}(dials)
			return ours, nil
		}
		c := mllp.NewClient("lab:2575", &mllp.ClientOptions{Dial: dial, Timeout: 10 * time.Second})
		answer, err := c.Send(t.Context(), []byte("order"), func(a []byte) bool { return string(a) == "order" })
		require.NoError(t, err)
		require.Equal(t, "order", string(answer))
		require.Equal(t, []string{"0s", "1s", "13s"}, got)
		require.NoError(t, c.Close())

		dials = -100
		c = mllp.NewClient("lab:2575", &mllp.ClientOptions{Dial: func(context.Context, string) (net.Conn, error) {
			return nil, errors.New("refused")
		}})
		began = time.Now()
		_, err = c.Send(t.Context(), []byte("order"), anything)
		require.ErrorIs(t, err, healthlab.Unavailable)
		require.Equal(t, 3*time.Second, time.Since(began))
	})
}

func TestClient_stopsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dial := func(context.Context, string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			go func() { _, _ = io.Copy(io.Discard, theirs) }()
			return ours, nil
		}
		c := mllp.NewClient("lab:2575", &mllp.ClientOptions{Dial: dial, Timeout: time.Hour})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		var both sync.WaitGroup
		for range 2 { // the second waits for its turn
			both.Go(func() {
				_, err := c.Send(ctx, []byte("order"), anything)
				require.ErrorIs(t, err, context.DeadlineExceeded)
			})
		}
		both.Wait()
		require.Equal(t, time.Second, time.Since(began))
		require.NoError(t, c.Close())
	})
}

// serve runs a server on loopback until the test is over.
func serve(t *testing.T, h mllp.Handler, o *mllp.ServerOptions) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan error)
	go func() { over <- mllp.NewServer(h, o).Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-over)
	})
	return l.Addr().String()
}

func TestClientAndServer_exchangeConcurrentMessages(t *testing.T) {
	address := serve(t, echo, &mllp.ServerOptions{MaxConnections: 4})
	var all sync.WaitGroup
	for i := range 3 {
		c := mllp.NewClient(address, nil)
		all.Go(func() {
			for j := range 20 {
				text := fmt.Sprint(i, "-", j)
				answer, err := c.Send(t.Context(), []byte(text), anything)
				require.NoError(t, err)
				require.Equal(t, "got "+text, string(answer))
			}
			require.NoError(t, c.Close())
		})
	}
	all.Wait()
}

func TestClientAndServer_exchangeMessagesOverTLS(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "lab"}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, &key.PublicKey, key)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	address := serve(t, echo, &mllp.ServerOptions{TLS: &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}})

	plain := mllp.NewClient(address, &mllp.ClientOptions{Attempts: 1})
	_, err = plain.Send(t.Context(), []byte("in the clear"), anything)
	require.ErrorIs(t, err, healthlab.Unavailable)
	stranger := mllp.NewClient(address, &mllp.ClientOptions{Attempts: 1, TLS: &tls.Config{MinVersion: tls.VersionTLS12}})
	_, err = stranger.Send(t.Context(), []byte("to whom?"), anything)
	require.ErrorIs(t, err, healthlab.Unavailable)

	c := mllp.NewClient(address, &mllp.ClientOptions{TLS: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool}})
	for range 2 {
		answer, err := c.Send(t.Context(), []byte("hello"), anything)
		require.NoError(t, err)
		require.Equal(t, "got hello", string(answer))
	}
	require.NoError(t, c.Close())
}

// Both ends on a pipe: one message, one answer.
func Example() {
	ours, theirs := net.Pipe()
	go mllp.NewServer(echo, nil).ServeConn(context.Background(), theirs)
	c := mllp.NewClient("lab:2575", &mllp.ClientOptions{
		Dial: func(context.Context, string) (net.Conn, error) { return ours, nil }})
	answer, err := c.Send(context.Background(), []byte("hello"), anything)
	fmt.Println(string(answer), err)
	fmt.Println(c.Close())
	// Output:
	// got hello <nil>
	// <nil>
}

// A laboratory that hangs up, in whatever way, is no failure.
func TestServer_hangUpIsNotLogged(t *testing.T) {
	for name, hangUp := range map[string]func(t *testing.T, c *net.TCPConn){
		"close": func(t *testing.T, c *net.TCPConn) { require.NoError(t, c.Close()) },
		"reset": func(t *testing.T, c *net.TCPConn) {
			require.NoError(t, c.SetLinger(0))
			require.NoError(t, c.Close())
		},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			defer l.Close()
			laboratory, err := net.Dial("tcp", l.Addr().String())
			require.NoError(t, err)
			ours, err := l.Accept()
			require.NoError(t, err)
			hangUp(t, laboratory.(*net.TCPConn))
			var logs bytes.Buffer
			mllp.NewServer(echo, &mllp.ServerOptions{Log: slog.New(slog.NewTextHandler(&logs, nil))}).ServeConn(t.Context(), ours)
			require.Empty(t, logs.String())
		})
	}
}
