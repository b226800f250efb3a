package webhook_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/webhook"
)

// hostile are addresses that no message may reach.
var hostile = []string{
	"0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.1", "100.100.100.200", "100.127.255.255",
	"127.0.0.1", "127.255.255.254", "169.254.0.1", "169.254.169.254", "172.16.0.1", "172.31.255.255",
	"192.0.0.1", "192.0.0.192", "192.0.2.1", "192.88.99.1", "192.168.0.1", "192.168.255.255", "198.18.0.1",
	"198.19.255.255", "198.51.100.7", "203.0.113.9", "224.0.0.1", "239.255.255.255", "240.0.0.1",
	"255.255.255.255", "168.63.129.16",
	"::", "::1", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "::ffff:10.0.0.1", "::127.0.0.1",
	"64:ff9b::7f00:1", "64:ff9b::808:808", "64:ff9b:1::1", "100::1", "fc00::1", "fd00:ec2::254", "fd12:3456::1",
	"fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1", "ff0e::1", "2001::1", "2001:0:4136:e378::1",
	"2001:10::1", "2001:db8::1", "2002:7f00:1::", "2002:c0a8:1::1", "3fff::1", "4000::1", "5f00::1",
}

func TestGuard_refusesPrivateAndSpecialAddresses(t *testing.T) {
	var g webhook.Guard
	for _, a := range hostile {
		require.False(t, g.Allowed(netip.MustParseAddr(a)), a)
	}
	require.False(t, g.Allowed(netip.Addr{}))
	for _, a := range []string{"8.8.8.8", "1.1.1.1", "172.32.0.1", "100.128.0.1", "192.0.1.1", "2606:4700::1", "2a00:1450::1", "::ffff:8.8.8.8"} {
		require.True(t, g.Allowed(netip.MustParseAddr(a)), a)
	}
}

func TestGuard_allowAndRefuseListsAndNAT64Apply(t *testing.T) {
	g := webhook.Guard{
		Allow:  []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("10.1.0.0/16")},
		Refuse: []netip.Prefix{netip.MustParsePrefix("10.1.2.0/24"), netip.MustParsePrefix("8.8.8.0/24")},
		NAT64:  true,
	}
	for a, want := range map[string]bool{
		"127.0.0.1": true, "::ffff:127.0.0.1": true, "::1": false, "10.1.1.1": true, "10.1.2.3": false, "10.2.0.1": false,
		"8.8.8.8": false, "64:ff9b::101:101": true, "64:ff9b::808:808": false, "64:ff9b::a02:1": false,
	} {
		require.Equal(t, want, g.Allowed(netip.MustParseAddr(a)), a)
	}
}

func TestGuard_controlRefusesUnresolvedOrPrivateDials(t *testing.T) {
	var g webhook.Guard
	require.NoError(t, g.Control(t.Context(), "tcp4", "8.8.8.8:443", nil))
	for _, c := range [][2]string{
		{"tcp4", "127.0.0.1:443"}, {"tcp6", "[::1]:443"}, {"tcp", "receiver.example.com:443"}, {"tcp", ""},
		{"udp", "8.8.8.8:443"}, {"unix", "/var/run/x.sock"}, {"tcp6", "[fe80::1%eth0]:443"},
	} {
		require.Error(t, g.Control(t.Context(), c[0], c[1], nil), c)
	}
}

// hostileURLs are URLs that a team must not be able to register.
var hostileURLs = []string{
	"", "/in", "//receiver.example.com/in", "receiver.example.com", "https:", "https://", "https:///in", "https:receiver.example.com",
	"http://receiver.example.com/in", "ftp://receiver.example.com", "file:///etc/passwd", "gopher://receiver.example.com",
	"javascript:alert(1)", "https://user@receiver.example.com", "https://user:word@receiver.example.com", "https://@receiver.example.com@10.0.0.1",
	"https://receiver.example.com/#part", "https://receiver.example.com/#",
	"https://receiver.example.com:22/", "https://receiver.example.com:80/", "https://receiver.example.com:0/",
	"https://receiver.example.com:65536/", "https://receiver.example.com:-1/", "https://receiver.example.com:/", "https://receiver.example.com:https/",
	"https://localhost/", "https://localhost:8443/", "https://LOCALHOST/", "https://a.localhost/", "https://receiver/", "https://printer.local/",
	"https://metadata.google.internal/", "https://1.0.0.127.in-addr.arpa/", "https://abc.onion/", "https://receiver.example.com./",
	"https://.example.com/", "https://a..example.com/", "https://-a.example.com/", "https://a-.example.com/", "https://a_b.example.com/",
	"https://exämple.com/", "https://ехample.com/", "https://example。com/", "https://127。0。0。1/",
	"https://127.0.0.1/", "https://127.1/", "https://2130706433/", "https://0x7f.1/", "https://0x7f000001/", "https://0177.0.0.1/",
	"https://127.0.0.01/", "https://0/", "https://0.0.0.0/", "https://10.0.0.1/", "https://169.254.169.254/latest/meta-data", "https://100.100.100.200/",
	"https://168.63.129.16/", "https://192.168.1.1:8443/", "https://[::1]/", "https://[::]/", "https://[::ffff:127.0.0.1]/", "https://[::ffff:7f00:1]/",
	"https://[fd00:ec2::254]/", "https://[fe80::1]/", "https://[fe80::1%25eth0]/", "https://[64:ff9b::7f00:1]/", "https://[2002:7f00:1::]/", "https://[2001:0:1::]/",
	"https://[::1/", "https://receiver.example.com\\@10.0.0.1/", "https://receiver.example.com /", "https://receiver.example.com\t/", "https://receiver.example.com\n/",
	"https://receiver.example.com%2f@10.0.0.1/", "https://%31%32%37.0.0.1/", "https://1.2.3.4.5/", "https://256.1.1.1/",
	"https://receiver.example.com/" + strings.Repeat("x", 3000), "https://" + strings.Repeat("x", 64) + ".example.com/",
	"https://" + strings.Repeat("abc.", 80) + "com/",
}

func TestCheckURL_refusesHostileURLs(t *testing.T) {
	require.GreaterOrEqual(t, len(hostileURLs), 60)
	var g webhook.Guard
	for _, raw := range hostileURLs {
		_, err := g.CheckURL(raw)
		require.ErrorIs(t, err, healthlab.Invalid, raw)
	}
}

func TestCheckURL_normalizesAcceptedURLs(t *testing.T) {
	var g webhook.Guard
	for raw, want := range map[string]string{
		"https://Receiver.Example.com/In?Q=1":   "https://receiver.example.com/In?Q=1",
		"https://receiver.example.com":          "https://receiver.example.com",
		"https://receiver.example.com:8443/in":  "https://receiver.example.com:8443/in",
		"https://xn--exmple-cua.com:49152/":     "https://xn--exmple-cua.com:49152/",
		"https://8.8.8.8/in":                    "https://8.8.8.8/in",
		"https://[2606:4700::1]:443/in":         "https://[2606:4700::1]:443/in",
		"https://a-b.1.example.co.uk/%20?x=%23": "https://a-b.1.example.co.uk/%20?x=%23",
	} {
		u, err := g.CheckURL(raw)
		require.NoError(t, err, raw)
		require.Equal(t, want, u.String())
	}
	_, err := g.CheckURL("http://user@10.0.0.1:22/#x")
	var invalid *healthlab.InvalidError
	require.ErrorAs(t, err, &invalid)
	require.Len(t, invalid.Problems, 5, "all at once: scheme, user, fragment, port, host")
	require.NotContains(t, err.Error(), "10.0.0.1")

	sandbox := webhook.Guard{Plain: true, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	for _, raw := range []string{"http://localhost:9000/in", "http://127.0.0.1:9000/in", "http://receiver.example.com:80/in"} {
		_, err := sandbox.CheckURL(raw)
		require.NoError(t, err, raw)
	}
}

func FuzzGuardAllowed(f *testing.F) {
	for _, a := range hostile {
		f.Add(netip.MustParseAddr(a).WithZone("").AsSlice())
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		a, ok := netip.AddrFromSlice(b)
		if !ok {
			return
		}
		var g webhook.Guard
		if a.Is4() {
			require.Equal(t, g.Allowed(a), g.Allowed(netip.AddrFrom16(a.As16())), "mapped and plain agree")
		}
		require.False(t, g.Allowed(a) && (a.IsPrivate() || a.IsLoopback() || a.IsLinkLocalUnicast() || a.IsMulticast() || a.IsUnspecified()))
	})
}

func FuzzCheckURL(f *testing.F) {
	for _, raw := range hostileURLs {
		f.Add(raw)
	}
	f.Add("https://Receiver.Example.com/In?Q=1")
	f.Fuzz(func(t *testing.T, raw string) {
		var g webhook.Guard
		u, err := g.CheckURL(raw)
		if err != nil {
			require.ErrorIs(t, err, healthlab.Invalid)
			return
		}
		again, err := g.CheckURL(u.String())
		require.NoError(t, err, "what is stored is still good")
		require.Equal(t, u.String(), again.String())
		if a, err := netip.ParseAddr(u.Hostname()); err == nil {
			require.True(t, g.Allowed(a))
		}
	})
}

// The URL of a broker is its scheme and a name; it is never dialled.
func TestCheckURL_acceptsBrokerURLsOfConfiguredSchemes(t *testing.T) {
	g := &webhook.Guard{Brokers: []string{"nats"}}
	for _, good := range []string{"nats://healthlab.events", "nats://A-b_c.D1"} {
		u, err := g.CheckURL(good)
		require.NoError(t, err, good)
		require.Equal(t, good, u.String())
		require.Equal(t, webhook.ClassBlocked, webhook.NewHTTP(&webhook.HTTPOptions{Guard: g}).
			Notify(t.Context(), webhook.Notification{URL: good}).Class)
	}
	for _, bad := range []string{
		"nats://", "nats://a/b", "nats://a?b", "nats://a#b", "nats://u@a", "nats://a:4222", "nats://a..b", "nats://.a",
		"nats://a.", "nats://*", "nats://a.>", "nats://_inbox.a", "nats://1a", "NATS://a", "nats:a", "kafka://a",
		"nats://[::1]", "nats://" + strings.Repeat("a", 254),
	} {
		_, err := g.CheckURL(bad)
		require.ErrorIs(t, err, healthlab.Invalid, bad)
	}
	_, err := (&webhook.Guard{}).CheckURL("nats://healthlab.events")
	require.ErrorIs(t, err, healthlab.Invalid)
}

func TestByScheme_choosesTheNotifierByTheURLScheme(t *testing.T) {
	ok := always(webhook.ClassOK, 200)
	n := webhook.ByScheme{"nats": &receiver{answer: ok}}
	require.Equal(t, webhook.ClassOK, n.Notify(t.Context(), webhook.Notification{URL: "nats://a"}).Class)
	require.Equal(t, webhook.ClassBlocked, n.Notify(t.Context(), webhook.Notification{URL: "https://a.example.com/nats://"}).Class)
}
