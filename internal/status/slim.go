package status

import (
	"slices"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Slim returns conditions as a cache should keep them: their words, which are the same in very many resources, are kept once.
func Slim(conditions []metav1.Condition) []metav1.Condition {
	slim := slices.Clone(conditions)
	for i := range slim {
		c := &slim[i]
		c.Type, c.Status, c.Reason, c.Message = same(c.Type), same(c.Status), same(c.Reason), same(c.Message)
	}
	return slices.Clip(slim)
}

func same[T ~string](text T) T {
	return unique.Make(text).Value()
}
