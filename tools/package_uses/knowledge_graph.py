"""Embeddings of a knowledge graph: TransE, TransH, DistMult, ComplEx and HolE on a margin loss, and ranks of links"""

import pandas
import same
from torchkge.data_structures import KnowledgeGraph
from torchkge.evaluation import LinkPredictionEvaluator
from torchkge.models import ComplExModel, DistMultModel, HolEModel, TransEModel, TransHModel, TransRModel
from torchkge.utils import MarginLoss

facts = pandas.DataFrame(
    {
        "from": same.labels(40, 9).numpy(),
        "to": same.labels(40, 9, seed=1).numpy(),
        "rel": same.labels(40, 3, seed=2).numpy(),
    }
).drop_duplicates()
graph = KnowledgeGraph(df=facts)
heads, tails, relations = graph.head_idx, graph.tail_idx, graph.relations
wrong = same.labels(len(heads), graph.n_ent, seed=3)
numbers = []
for make in (
    lambda: TransEModel(8, graph.n_ent, graph.n_rel, dissimilarity_type="L2"),
    lambda: TransHModel(8, graph.n_ent, graph.n_rel),
    lambda: TransRModel(8, 4, graph.n_ent, graph.n_rel),
    lambda: DistMultModel(8, graph.n_ent, graph.n_rel),
    lambda: ComplExModel(8, graph.n_ent, graph.n_rel),
    lambda: HolEModel(8, graph.n_ent, graph.n_rel),
):
    net = same.weights(make(), 0.4)
    criterion = MarginLoss(0.5)
    numbers += same.train(net, lambda m, c=criterion: c(*m(heads, tails, relations, heads, wrong)), steps=4, lr=0.01)
    net.normalize_parameters()
    evaluator = LinkPredictionEvaluator(net, graph)
    evaluator.evaluate(b_size=16, verbose=False)
    numbers += [*evaluator.mean_rank(), *evaluator.mrr()]
same.report([float(x) for x in numbers])
