package rules

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPhone_acceptsNumbersAndExtensions(t *testing.T) {
	for s, want := range map[string]bool{
		"+14155550137": true, "+1 (415) 555-0137": true, "415.555.0137": true, "1-415-555-0137": true, "5550137": true,
		"tel:+1-415-555-0137": true, "415 555 0137 ext. 12": true, "+14155550137x7": true, "+14155550137;ext=7": true,
		"+49 1512 3456789": true, "011 49 1512 3456789": true, "+41\u00a044\u00a0668\u00a018\u00a000": true, "+290 12345": true,
		"": false, "12": false, "hello": false, "+": false, "+1415555013": false, "+141555501371": false, "41555501": false,
		"+0123456789": false, "+1234567890123456": false, "++14155550137": false, "+14155550137 x": false, "415-555-0137 or 415-555-0138": false,
		"+49 1": false, "call me": false, "+SECRET": false,
	} {
		require.Equal(t, want, phone(s), "%q", s)
	}
}
