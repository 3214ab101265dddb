# Makes rdc.txt: the randomized dependence coefficient of 30 pairs of columns, as SPFlow has
# it and exactly. Run with numpy and scikit-learn: python3 rdc.py > rdc.txt
#
# SPFlow's rdc_cca(i, j) is the correlation of the first canonical variates that scikit-learn's
# CCA(n_components=1, max_iter=100) finds, of the sine features and a column of ones; this
# script calls that same CCA. It stops where rounds change little, which on features this
# collinear may be before the maximum: "exact" is the largest canonical correlation, from
# bases cut at 1e-10 of the largest singular value. Columns and weights come from a linear
# congruential generator, which the test has too.
import warnings
import numpy as np
from sklearn.cross_decomposition import CCA

warnings.filterwarnings('ignore')
SINES, ROWS = 10, 400


class Generator:
    def __init__(self, state):
        self.state = state

    def uniform(self):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return ((self.state >> 11) + 0.5) / 2**53

    def normal(self):
        return np.sqrt(-2 * np.log(self.uniform())) * np.cos(2 * np.pi * self.uniform())


def ranks(x):
    return np.searchsorted(np.sort(x), x, side='right') / len(x)


def features(x, weights, labels):
    inputs = [(x == c).astype(float) for c in range(labels)] if labels else [x]
    copula = np.stack([ranks(f) for f in inputs] + [np.ones(len(x))], 1)
    return np.sin(1 / 6 / copula.shape[1] * copula @ weights)


def basis(f):
    f = f - f.mean(0)
    f = f - f.mean(0)
    u, s, _ = np.linalg.svd(f, full_matrices=False)
    return u[:, s > 1e-10 * s[0]]


KINDS = {  # of the second column, from the first and noise; with its number of labels
    'linear': (lambda x, e: x + 0.1 * e, 0),
    'noisy': (lambda x, e: x + 2 * e, 0),
    'square': (lambda x, e: x * x + 0.3 * e, 0),
    'sine': (lambda x, e: np.sin(3 * x) + 0.3 * e, 0),
    'exp': (lambda x, e: np.exp(x + e), 0),
    'bit': (lambda x, e: (x + 0.5 * e > 0.5).astype(float), 2),
    'label': (lambda x, e: np.clip(np.floor(x + 0.5 * e + 2.5), 0, 4), 5),
    'sign': (lambda x, e: (x * e > 0).astype(float), 2),
    'count': (lambda x, e: np.floor(np.exp(x / 2 + 0.5 * e) * 20), 0),
    'apart': (lambda x, e: e, 0),
}

print('# kind seed rdc_cca exact; from rdc.py')
for turn in range(3):
    for number, (kind, (make, labels)) in enumerate(KINDS.items()):
        seed = 1000 * turn + number + 1
        g = Generator(seed)
        x = np.array([g.normal() for _ in range(ROWS)])
        e = np.array([g.normal() for _ in range(ROWS)])
        x, y = [c.astype(np.float32).astype(float) for c in (x, make(x, e))]
        wx = np.array([[g.normal() for _ in range(SINES)] for _ in range(2)])
        wy = np.array([[g.normal() for _ in range(SINES)] for _ in range((labels or 1) + 1)])
        a, b = features(x, wx, 0), features(y, wy, labels)
        ones = np.ones((ROWS, 1))
        u, v = CCA(n_components=1, max_iter=100).fit_transform(np.hstack([a, ones]), np.hstack([b, ones]))
        cca = np.corrcoef(u.T, v.T)[0, 1]
        exact = np.linalg.svd(basis(a).T @ basis(b))[1][0]
        print(kind, seed, f'{cca:.7f} {exact:.7f}')
