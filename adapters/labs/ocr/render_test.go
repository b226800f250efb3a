package ocr_test

import (
	"bytes"
	"image"
	"image/color"
	"image/jpeg"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/image/draw"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/labreport"
)

func TestRenderPage_returnsAtMostTheAskedPixels(t *testing.T) {
	e := engine(t)
	img := image.NewNRGBA(image.Rect(0, 0, 60, 40))
	draw.Draw(img, image.Rect(0, 0, 30, 20), image.NewUniform(color.NRGBA{R: 200, A: 255}), image.Point{}, draw.Src)
	for _, pixels := range []int{2400, 600, 300} {
		got, err := e.RenderPage(t.Context(), asPNG(t, img), 1, pixels)
		require.NoError(t, err)
		w, h := got.Bounds().Dx(), got.Bounds().Dy()
		require.LessOrEqual(t, w*h, pixels)
		require.InDelta(t, 1.5, float64(w)/float64(h), 0.1)
		require.Equal(t, color.RGBA{200, 0, 0, 255}, got.At(0, 0))
		require.Equal(t, color.RGBA{255, 255, 255, 255}, got.At(w-1, h-1), "transparent parts are paper")
	}
	// A camera that was held sideways says so.
	var b bytes.Buffer
	require.NoError(t, jpeg.Encode(&b, img, nil))
	exif := []byte("\xff\xe1\x00\x22Exif\x00\x00II*\x00\x08\x00\x00\x00\x01\x00\x12\x01\x03\x00\x01\x00\x00\x00\x06\x00\x00\x00\x00\x00\x00\x00")
	turned := append(append([]byte("\xff\xd8"), exif...), b.Bytes()[2:]...)
	got, err := e.RenderPage(t.Context(), labreport.File{Type: "image/jpeg", Data: turned}, 1, 2400)
	require.NoError(t, err)
	require.Equal(t, image.Rect(0, 0, 40, 60), got.Bounds())
	r, _, _, _ := got.At(35, 5).RGBA()
	black, _, _, _ := got.At(5, 5).RGBA()
	require.Greater(t, r, black, "the red corner is at the top right")

	_, err = e.RenderPage(t.Context(), asPNG(t, img), 2, 100)
	require.ErrorIs(t, err, healthlab.NotFound)
	_, err = e.RenderPage(t.Context(), labreport.File{Type: "image/png", Data: []byte("\x89PNG\r\n\x1a\n")}, 1, 100)
	require.ErrorIs(t, err, healthlab.Invalid)
}
