package models_test

import (
	"testing"

	"gonbatch/distributed/ranktest"
)

func TestMain(m *testing.M) { ranktest.QuickMain(m) }
