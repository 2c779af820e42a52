package trainer

import (
	"image"

	"github.com/janpfeifer/gonb/gonbui"
)

// LogImage logs an image for the current step on rank 0: as a PNG in the run directory, to
// TensorBoard and MLflow, and below the cell in a notebook. Other ranks do nothing.
func (t *Trainer) LogImage(name string, img image.Image) error {
	if !t.world.IsMain() {
		return nil
	}
	if gonbui.IsNotebook {
		if err := gonbui.DisplayImage(img); err != nil {
			return err
		}
	}
	if t.logger == nil {
		return nil
	}
	return t.logger.Image(t.at.Step, name, img)
}
