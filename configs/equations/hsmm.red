# A hidden Markov model with explicit durations: a state s lasts for d+1 columns with
# probability dur[s,d], or to the last column if that comes first. be[t,r] is the
# probability of the columns from t on, given that state r ended before column t.
param T, S, D : T >= 1, S >= 1, D >= 1; # columns of the data, model.latents, longest duration
param C : C >= 1;                       # categories of the data
size D = 4;
input int x[T] in [0,C);
input float e[S,C], a[S,S], a0[S], dur[S,D];
array float seg[T,D,S], be[T+D,S], out[];
output out;

seg[t,d,s] *= e[s,x[u]] : { [t,d,s,u] : 0 <= t < T, 0 <= d < D, 0 <= s < S, t <= u <= t+d, u < T };
be[t,r]    += 1         : { [t,r] : T <= t < T+D, 0 <= r < S };
be[t,r]    += a[r,s]*dur[s,d]*seg[t,d,s]*be[t+d+1,s] : { [t,r,s,d] : 0 <= t < T, 0 <= r < S, 0 <= s < S, 0 <= d < D };
out[]      += a0[s]*dur[s,d]*seg[0,d,s]*be[d+1,s] : { [s,d] : 0 <= s < S, 0 <= d < D };
