package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"github.com/example/memcached-operator/test/testenv"
)

// memoryLimit returns the memory that config/manager limits the operator to. Here it runs without a limit.
func memoryLimit() (resource.Quantity, error) {
	path := filepath.Join(testenv.Root(), "config", "manager", "manager.yaml")
	content, err := os.ReadFile(path)
	if err != nil {
		return resource.Quantity{}, err
	}
	limit, err := memoryLimitIn(content)
	if err != nil {
		return limit, fmt.Errorf("%s: %w", path, err)
	}
	return limit, nil
}

// memoryLimitIn returns the memory that the container manager is limited to by one of some manifests.
func memoryLimitIn(manifests []byte) (resource.Quantity, error) {
	for manifest := range bytes.SplitSeq(manifests, []byte("\n---\n")) {
		var deployment appsv1.Deployment
		if err := yaml.Unmarshal(manifest, &deployment); err != nil {
			return resource.Quantity{}, err
		}
		for _, container := range deployment.Spec.Template.Spec.Containers {
			if limit := container.Resources.Limits.Memory(); container.Name == "manager" && !limit.IsZero() {
				return *limit, nil
			}
		}
	}
	return resource.Quantity{}, errors.New("no container manager has a memory limit")
}

// carried tells how many Foos a memory limit carries when the operator starts, which takes more than to go on: where the line through the most
// memory that a start has had with each number of them reaches it, rounded down. What is beyond the numbers that were measured is told as that.
func (f *found) carried(limit int64) string {
	var foos, memory float64 // of the size before
	for _, count := range f.Scale.Sizes {
		of := f.sizesOf(ours, count)
		if len(of) == 0 {
			continue
		}
		most := slices.Max(each(of, func(s *size) float64 { return float64(s.Peak) }))
		if most >= float64(limit) {
			if foos == 0 {
				return fmt.Sprintf("fewer than %d", count)
			}
			return fmt.Sprintf("some %d", roundDown(foos+(float64(count)-foos)*(float64(limit)-memory)/(most-memory)))
		}
		foos, memory = float64(count), most
	}
	return fmt.Sprintf("more than %.0f", foos)
}

// roundDown rounds a number down to whole thousands, or to two digits if it is less than ten thousand.
func roundDown(value float64) int {
	step := 1000
	for step > 1 && value < float64(10*step) {
		step /= 10
	}
	return int(value) / step * step
}
