package result

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"mime"
	"path/filepath"
	"strings"

	"gonbatch/internal/rundir"
	"gonbatch/kernel/display"
)

// Image is an image from a run: a plot of a metric, a sample, or an image that a cell showed. As
// the last expression of a cell, it is displayed.
type Image struct {
	// Name is the image's name: "loss", "images/samples/step-00000100", or "cell 3" for an image in
	// the executed notebook.
	Name string
	// Type is the image's MIME type.
	Type string
	// Path is the image's file, or the executed notebook.
	Path string
	// Data is the encoded image.
	Data []byte
}

// Images returns all images of the run: first the files, then those in the executed notebook.
func (r Run) Images() []Image {
	paths, err := r.dir.ImageFiles()
	check(err)
	var all []Image
	for _, path := range paths {
		data, err := rundir.ReadFile(path)
		check(err)
		name, err := filepath.Rel(r.dir.Curves(), path)
		check(err)
		ending := filepath.Ext(path)
		all = append(all, Image{Name: strings.TrimSuffix(name, ending), Type: mime.TypeByExtension(strings.ToLower(ending)), Path: path, Data: data})
	}
	shown, err := shownImages(r.dir.Executed())
	check(err)
	return append(all, shown...)
}

// Image returns an image by its name.
func (r Run) Image(name string) Image {
	var names []string
	for _, image := range r.Images() {
		if image.Name == name {
			return image
		}
		names = append(names, image.Name)
	}
	panic(fmt.Errorf("result: the run %s has no image %q, only %q", r.Name(), name, names))
}

// Bundle implements display.Bundler.
func (i Image) Bundle() display.Bundle {
	if i.Type == display.SVG {
		return display.Bundle{display.Text: i.Name, display.SVG: string(i.Data)}
	}
	return display.Bundle{display.Text: i.Name, i.Type: base64.StdEncoding.EncodeToString(i.Data)}
}

// String returns the image's name and file.
func (i Image) String() string {
	return fmt.Sprintf("%s (%s, %d bytes, %s)", i.Name, i.Type, len(i.Data), i.Path)
}

// shownImages returns the images in the outputs of a notebook; none if the run's output was not
// recorded.
func shownImages(file string) ([]Image, error) {
	text, err := rundir.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var notebook struct {
		Cells []struct {
			Outputs []struct {
				Data map[string]json.RawMessage `json:"data"`
			} `json:"outputs"`
		} `json:"cells"`
	}
	if err := json.Unmarshal(text, &notebook); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	var all []Image
	for number, cell := range notebook.Cells {
		for _, output := range cell.Outputs {
			for _, kind := range []string{display.PNG, "image/jpeg", "image/gif", display.SVG} {
				if data, ok := imageData(kind, output.Data[kind]); ok {
					all = append(all, Image{Name: fmt.Sprintf("cell %d", number+1), Type: kind, Path: file, Data: data})
					break
				}
			}
		}
	}
	return all, nil
}

// imageData decodes an image of an output: text for SVG, else base64; either may be stored as
// lines.
func imageData(kind string, raw json.RawMessage) ([]byte, bool) {
	if raw == nil {
		return nil, false
	}
	var text string
	var lines []string
	if json.Unmarshal(raw, &lines) == nil {
		text = strings.Join(lines, "")
	} else if json.Unmarshal(raw, &text) != nil {
		return nil, false
	}
	if kind == display.SVG {
		return []byte(text), true
	}
	data, err := base64.StdEncoding.DecodeString(strings.ReplaceAll(text, "\n", ""))
	return data, err == nil
}
