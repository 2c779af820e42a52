package main

import (
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
)

// The JPEGs have the mean size of ImageNet's.
const (
	photoWidth, photoHeight = 500, 375
	photoCount              = 320
)

// writePhotos writes JPEGs that compress as photos do: waves with some noise.
func writePhotos(folder string) error {
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range photoCount {
		photo := image.NewRGBA(image.Rect(0, 0, photoWidth, photoHeight))
		a, b := 20+60*rng.Float64(), 20+60*rng.Float64()
		for y := range photoHeight {
			for x := range photoWidth {
				wave := 100 + 80*math.Sin(float64(x)/a)*math.Cos(float64(y)/b)
				photo.SetRGBA(x, y, color.RGBA{uint8(wave + 30*rng.Float64()), uint8(wave + 20*rng.Float64()), uint8(200 - wave/2), 0xff})
			}
		}
		path := filepath.Join(folder, fmt.Sprint("class", i%2), fmt.Sprint(i, ".jpg"))
		if err := writePhoto(path, photo); err != nil {
			return err
		}
	}
	return nil
}

func writePhoto(path string, photo image.Image) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(jpeg.Encode(file, photo, &jpeg.Options{Quality: 90}), file.Close())
}
