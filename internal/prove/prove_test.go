package prove_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/internal/prove"
)

func TestCount(t *testing.T) {
	for _, tt := range []struct {
		name, env string
		want      int
	}{
		{"unset", "", 3},
		{"one", "1", 30},
		{"anything else", "true", 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("HEALTHLAB_PROVE", tt.env)
			require.Equal(t, tt.want, prove.Count(3, 30))
			require.Equal(t, tt.want == 30, prove.Full())
		})
	}
}

func TestAll(t *testing.T) {
	for _, tt := range []struct {
		name, prove, ci string
		want            bool
	}{
		{"neither", "", "", false},
		{"make prove", "1", "", true},
		{"CI", "", "true", true},
		{"another value", "true", "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("HEALTHLAB_PROVE", tt.prove)
			t.Setenv("CI", tt.ci)
			require.Equal(t, tt.want, prove.All())
		})
	}
}
