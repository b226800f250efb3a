package httpapi_test

import (
	"net/http/httptest"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/httpapi"
)

func TestForwardedAddress_trustsOnlyKnownProxies(t *testing.T) {
	of := httpapi.ForwardedAddress([]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")})
	for name, tt := range map[string]struct {
		from string
		said []string
		want string
	}{
		"no proxy":                      {"203.0.113.9:4000", []string{"198.51.100.1"}, "203.0.113.9"},
		"one proxy":                     {"10.0.0.1:4000", []string{"198.51.100.1"}, "198.51.100.1"},
		"two proxies":                   {"10.0.0.1:4000", []string{"198.51.100.1, 10.0.0.2"}, "198.51.100.1"},
		"a client that invents another": {"10.0.0.1:4000", []string{"192.0.2.7, 198.51.100.1", "10.0.0.2"}, "198.51.100.1"},
		"an IPv6 client":                {"10.0.0.1:4000", []string{"2001:db8:1:2:3:4:5:6"}, "2001:db8:1:2::/64"},
		"a proxy that says nothing":     {"10.0.0.1:4000", nil, "10.0.0.1"},
		"a proxy that says nonsense":    {"10.0.0.1:4000", []string{"unknown"}, "10.0.0.1"},
		"proxies alone":                 {"10.0.0.1:4000", []string{"10.0.0.3"}, "10.0.0.3"},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequestWithContext(t.Context(), "GET", "/", nil)
			r.RemoteAddr = tt.from
			r.Header["X-Forwarded-For"] = tt.said
			require.Equal(t, tt.want, of(r))
		})
	}
}
