package strictjson_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/aggregate/internal/strictjson"
)

func TestParse_keepsTheTextOfEachValue(t *testing.T) {
	n, err := strictjson.Parse([]byte(` { "a" : [ 1 , {"b":-2.5e3 } ] ,"c":"x,: ", "d":null,"e" :true } `))
	require.NoError(t, err)
	for key, want := range map[string]string{"a": `[ 1 , {"b":-2.5e3 } ]`, "c": `"x,: "`, "d": `null`, "e": `true`} {
		require.Equal(t, want, string(n.Get(key).Raw), key)
	}
	require.Equal(t, `-2.5e3`, string(n.Get("a").Items[1].Get("b").Raw))
}
