"""Verbs: `French | aspect | adverbs | objects | English`.

aspect   s: a state, English simple present; i: a state whose past is the French imperfect (voulait);
         a: an activity, English progressive; e: an event, not used in the present
adverbs  letter of a list in ADVERBS; - for none
objects  letters of the noun classes in nouns.py; - for none
A French preposition at the end (voter contre) governs the object. Frequent verbs stand first.
"""

TRANSITIVE = """adopter|e|A|TTTM|adopt
rejeter|e|A|TTTMN|reject
soutenir|s|S|TTCMMX|support
défendre|s|S|TGGMX|defend
présenter|e|A|TRM|present
approuver|e|A|TTCM|approve
examiner|a|C|TRCM|examine
critiquer|s|S|TRMN|criticise
protéger|s|E|XXG|protect
combattre|a|E|P|fight
voter pour|e|A|T|vote for
voter contre|e|A|T|vote against
étudier|a|C|TRR|study
aider|a|E|X|help
condamner|s|S|PPN|condemn
modifier|e|A|TTCM|amend
signer|e|A|CC|sign
renforcer|a|E|GGN|strengthen
s'opposer à|s|S|TTCMN|oppose
participer à|a|A|E|take part in
publier|e|A|TRR|publish
consulter|a|A|XXO|consult
réduire|a|E|P|reduce
préparer|a|C|TREM|prepare
se féliciter de|s|-|TTCME|welcome
garantir|s|E|G|guarantee
dénoncer|s|S|PN|denounce
tenir compte de|s|S|TRCE|take account of
rencontrer|e|A|OXX|meet
négocier|a|A|CC|negotiate
répondre à|e|A|OXR|reply to
retirer|e|A|TT|withdraw
créer|e|A|BB|set up
gérer|s|E|B|manage
moderniser|a|E|B|modernise
financer|a|E|MBB|finance
encourager|s|E|XG|encourage
lire|a|C|TRR|read
représenter|i|S|XX|represent
introduire|e|A|NN|introduce
informer|e|A|OX|inform
imposer|e|A|NN|impose
discuter de|a|S|TMCRP|discuss
supprimer|e|A|NN|abolish
améliorer|a|E|TM|improve
renoncer à|e|A|MNC|give up
organiser|a|A|E|organise
assister à|e|-|E|attend
bloquer|s|S|TMC|block
oublier|e|-|XG|forget
écouter|a|C|XO|listen to
mettre en œuvre|a|E|MMT|implement
annoncer|e|A|MN|announce
parler de|a|S|PTME|speak about
compter sur|i|S|XO|count on
négliger|s|-|XG|neglect
accepter|e|A|TNC|accept
ratifier|e|A|CC|ratify
réviser|a|C|TCM|revise
remercier|e|S|OX|thank
convaincre|e|-|OX|convince
rédiger|a|C|TR|draft
étendre|e|E|MN|extend
sous-estimer|s|S|P|underestimate
éliminer|e|E|P|eliminate
mettre fin à|e|A|P|put an end to
faire confiance à|i|S|OX|trust
prendre note de|e|A|TR|take note of
se prononcer sur|e|A|TN|give a view on
contribuer à|s|E|G|contribute to
conclure|e|A|C|conclude
recevoir|e|A|OX|receive
inviter|e|A|OX|invite
décevoir|e|S|X|disappoint
transmettre|e|A|RT|forward
fermer|e|A|B|close"""

# Text or measure does something to people, goals or problems.
EFFECTS = """protéger|s|E|XXG|protect
concerner|s|-|XXD|concern
renforcer|s|E|G|strengthen
aider|s|E|X|help
menacer|s|-|XXG|threaten
réduire|s|E|P|reduce
favoriser|s|E|XG|favour
affaiblir|s|E|GX|weaken
encourager|s|E|XG|encourage
aggraver|s|E|P|aggravate
limiter|s|E|PG|limit
couvrir|s|E|D|cover"""

# Good things that may be somebody's purpose.
HELP = """protéger|s|E|XXG|protect
aider|s|E|X|help
renforcer|s|E|G|strengthen
réduire|s|E|PP|reduce
combattre|s|E|PP|combat
garantir|s|E|G|guarantee
favoriser|s|E|XG|favour
éliminer|e|E|P|eliminate
encourager|s|E|XG|encourage
prévenir|s|E|P|prevent
soutenir|s|S|X|support
sauver|s|-|X|save"""

# A problem does something to people or goals.
AFFLICTIONS = """menacer|s|-|XXG|threaten
toucher|s|-|XX|affect
inquiéter|s|-|XO|worry
affaiblir|s|E|GX|weaken
frapper|s|-|X|hit
compromettre|s|-|G|jeopardise"""

# With a clause: dire que.
SAYING = """dire|e|-|-|say
penser|i|-|-|think
savoir|i|-|-|know
croire|i|-|-|believe
constater|s|-|-|note
déclarer|e|-|-|state
estimer|i|-|-|consider
souligner|e|-|-|stress
confirmer|e|-|-|confirm
espérer|i|-|-|hope
affirmer|e|-|-|claim
expliquer|e|-|-|explain
annoncer|e|-|-|announce
reconnaître|s|-|-|acknowledge
rappeler|e|-|-|point out
ajouter|e|-|-|add
admettre|s|-|-|admit"""

# With an infinitive: vouloir faire, refuser de faire.
CONTROL = """vouloir|i|-|-|want to
décider de|e|-|-|decide to
souhaiter|i|-|-|wish to
refuser de|s|-|-|refuse to
promettre de|e|-|-|promise to
proposer de|s|-|-|propose to
essayer de|a|-|-|try to
continuer à|s|-|-|continue to
espérer|i|-|-|hope to
accepter de|e|-|-|agree to
commencer à|e|-|-|begin to
hésiter à|s|-|-|hesitate to
envisager de|a|-|-|plan to
réussir à|e|-|-|manage to
renoncer à|e|-|-|decline to
s'engager à|e|-|-|undertake to
choisir de|e|-|-|choose to
se préparer à|a|-|-|prepare to
oublier de|e|-|-|forget to"""

# Something to somebody.
GIVING = """présenter|e|A|TRM|present
transmettre|e|A|TRR|forward
envoyer|e|A|RT|send
soumettre|e|A|TM|submit
expliquer|e|A|TMN|explain
recommander|e|A|TM|recommend
montrer|e|A|RT|show
proposer|e|A|TM|propose
communiquer|e|A|RR|communicate
remettre|e|A|RR|hand"""

# Nothing, or a place, follows. Subjects are people.
INTRANSITIVE = """s'abstenir|e|-|-|abstain
démissionner|e|-|-|resign
se tromper|e|-|-|make a mistake
réagir|e|A|-|react
hésiter|s|S|-|hesitate
échouer|e|-|-|fail
intervenir|e|A|-|intervene
protester|e|S|-|protest
voter|e|-|-|vote
se réunir|e|A|-|meet"""

# With a place: aller en France. The English verb brings its preposition.
MOTION_TO = """aller|e|-|-|go to
se rendre|e|A|-|travel to
arriver|e|-|-|arrive in
revenir|e|A|-|come back to"""

MOTION_FROM = """revenir|e|A|-|return from
partir|e|A|-|set off from"""

ADVERBS = {
    "A": """rapidement = quickly; officiellement = officially; finalement = finally;
        immédiatement = immediately; publiquement = publicly; formellement = formally;
        prudemment = cautiously; discrètement = quietly""",
    "C": """attentivement = carefully; rapidement = quickly; minutieusement = thoroughly;
        sérieusement = seriously; consciencieusement = conscientiously""",
    "S": """fermement = firmly; clairement = clearly; souvent = often; publiquement = publicly;
        ouvertement = openly; constamment = constantly; vivement = strongly; sincèrement = sincerely;
        systématiquement = systematically; énergiquement = energetically""",
    "E": """efficacement = effectively; activement = actively; considérablement = considerably;
        progressivement = gradually; directement = directly; réellement = really; durablement = lastingly;
        sensiblement = appreciably; indirectement = indirectly""",
}
